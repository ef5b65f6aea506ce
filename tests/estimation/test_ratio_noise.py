"""What disagreement adds to a ratio is estimated without bias, and may come out below 0."""

import random

import pytest

from estimation import selectors
from tests.support import evaluation
from tests.support.material import small_material

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


class Disagreeing(dict[tuple[str, str], int]):
    """Grades of which every second one is anything."""

    def __init__(self, truth: dict[tuple[str, str], int], seed: int) -> None:
        super().__init__(truth)
        self.rng = random.Random(seed)

    def __getitem__(self, pair: tuple[str, str]) -> int:
        any_grade = self.rng.random() < 0.5
        return self.rng.choice([0, 0, 1, 2, 3]) if any_grade else super().__getitem__(pair)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(10, 16))
def test_limits_of_ratios_are_numbers_whatever_people_say(seed: int) -> None:
    material = small_material(topics=3, documents=10, runs=3, depth=6, seed=seed)
    campaign = evaluation.with_material(material=material)
    row = evaluation.drawn(
        campaign,
        measure="nDCG@5",
        reported=["DCG@5", "AP"],
        method=["priority", "poisson"][seed % 2],
        goal="single",
        run=f"run{1 + seed % 3}",
        budget=20,
        batch_size=20,
        floor=0.0,
        depth=2,
        seed=str(seed),
    )
    said = Disagreeing(material.truth, seed)
    while evaluation.judge(campaign, 1000, truth=said):
        pass
    assert selectors.latest_estimates(row) is not None
