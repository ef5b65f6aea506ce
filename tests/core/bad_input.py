"""Valid calls of the core over a tiny pool, of which tests replace one argument by a bad one."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool
from estimation.core.estimates.difference import difference_estimate
from estimation.core.estimates.estimators import (
    importance_sampling,
)
from estimation.core.inference.ranks import rank_runs
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.estimates import estimate as estimate_active
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import make_plan
from estimation.core.rounds.active.sampling import plan_batch, start
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import QueryDesign
from estimation.core.rounds.topics.estimators import ratio_estimate
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import (
    draw,
)
from estimation.core.sampling.priors import Prior, make_prior
from estimation.research.baselines.select import select
from estimation.research.simulation import simulate
from estimation.research.trials.settings import Setting

DCG, P1 = parse_measure("DCG@2"), parse_measure("P@1")
GOAL = goals.absolute("alpha", "beta")
NAN = float("nan")
THEIR_RUNS = "its runs are alpha, beta, gamma"
MEASURES = re.escape("P@10, ") + ".*"


def whole(array: object) -> np.ndarray:
    return np.array(array, dtype=np.int64)


class Given:
    """Valid arguments over the tiny pool; keyword arguments replace some of them."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.grades = whole([3, 0, 1, 2, 0])

    def prior(self, **options: object) -> Prior:
        settings = {"name": "rank", "goal": GOAL, "measure": DCG, "max_grade": 3}
        return make_prior(self.pool, **(settings | options))

    def design(self, **options: object) -> Design:
        settings = {
            "goal": GOAL, "measure": DCG, "prior": self.prior(), "budget": 3, "batch_size": 2
        }  # fmt: skip
        return make_design(self.pool, **(settings | options))

    def iid(self, **options: object) -> Design:
        return self.design(**({"method": "iid", "budget": 6} | options))

    @property
    def census(self) -> Design:
        return self.design(budget=5, batch_size=5)

    def rows(self, pairs: list[int], grades: list[int] | None = None) -> LabelRows:
        return LabelRows(whole(pairs), whole(grades or self.grades[pairs]))

    def evaluate(
        self, pairs: tuple[int, ...] = (0, 1, 2, 3, 4), *, design: Design | None = None, **options
    ) -> Evaluation:
        rows = self.rows(list(pairs), options.pop("grades", [0] * len(pairs)))
        sample = options.pop("sample", None) or draw(self.pool, self.census, seed="s")
        settings = {"labels": rows, "measures": [DCG], "max_grade": 3}
        return evaluate(self.pool, PairRound(design or self.census, sample), **(settings | options))

    def together(self, *parts: PairRound, **options: object) -> Evaluation:
        settings = {"labels": self.rows([0, 1, 2, 3, 4]), "measures": [DCG], "max_grade": 3}
        return evaluate(self.pool, RoundsTogether(tuple(parts)), **(settings | options))

    @property
    def part(self) -> PairRound:
        return PairRound(self.census, draw(self.pool, self.census, seed="s"))

    def drawn(self, **options: object) -> object:
        """What importance sampling takes: two pairs, drawn once and twice."""
        settings = {"probability": np.array([0.4, 0.6]), "counts": whole([1, 2])}
        weights, labels = options.pop("weights", None), options.pop("labels", None)
        return importance_sampling(
            self.weights() if weights is None else weights,
            labels or self.labels(),
            **(settings | options),
        )

    def weights(self, *, first: float | None = None) -> object:
        weights = self.pool.weights(DCG, whole([0, 1]))
        if first is not None:
            weights.data[0] = first
        return weights

    def labels(self, **options: object) -> PairLabels:
        values = {"mean": np.array([1.0, 0.5]), "number": whole([1, 1]), "variance": np.zeros(2)}
        return PairLabels(**(values | options), noise_measured=False)

    def difference(self, **options: object) -> object:
        settings = {
            "measure": DCG, "pairs": whole([0, 1]), "labels": self.labels(),
            "inclusion": np.full(5, 0.5), "predictions": np.ones(5),
        }  # fmt: skip
        return difference_estimate(self.pool, **(settings | options))

    def simulate(self, **options: object) -> object:
        settings = {"grades": self.grades, "measure": DCG, "max_grade": 3, "seeds": ["a"]}
        return simulate(self.pool, self.census, **(settings | options))

    def queries(self, **options: object) -> QueryDesign:
        settings = {
            "goal": GOAL, "measure": DCG, "model": uniform_grades(self.pool, max_grade=3),
            "budget": 5.0,
        }  # fmt: skip
        return make_query_design(self.pool, **(settings | options))

    def topic_values(self, pairs: list[int], grades: list[int], **options: object) -> object:
        settings = {"labels": self.rows(pairs, grades), "measure": DCG, "max_grade": 3}
        return judged_topics(self.pool, **(settings | options)).value

    def ratio(self, **options: object) -> object:
        settings = {"weight": np.ones(2), "counts": whole([1, 1])}
        values = options.pop("values", np.ones((2, 3)))
        return ratio_estimate(values, **(settings | options))

    def plan(self, **options: object) -> object:
        settings = {"measures": [parse_measure("AP")], "budget": 4, "batch_size": 2}
        return make_plan(self.pool, **(settings | options))

    def active(self, **options: object) -> object:
        return start(make_frame(self.pool), **({"seed": "s"} | options))

    def next_batch(self, rows: LabelRows, **options: object) -> object:
        frame = make_frame(self.pool)
        nothing = LabelRows(whole([]), whole([]))
        state = plan_batch(frame, start(frame, seed="s", batch_size=1), labels=nothing)
        return plan_batch(frame, state, labels=rows, **options)

    def first_active(self) -> list[int]:
        frame = make_frame(self.pool)
        nothing = LabelRows(whole([]), whole([]))
        state = plan_batch(frame, start(frame, seed="s", batch_size=1), labels=nothing)
        return sorted(state.pair.tolist())

    def estimate_active(self, **options: object) -> object:
        frame = make_frame(self.pool)
        settings = {"labels": LabelRows(whole([]), whole([])), "measures": ["AP"]}
        return estimate_active(frame, start(frame, seed="s"), **(settings | options))

    def select(self, name: str = "mtf", **options: object) -> object:
        settings = {"grades": self.grades, "budget": 3, "seed": "s"}
        return select(self.pool, name, **(settings | options))

    def setting(self, **options: object) -> Setting:
        settings = {
            "grades": self.grades, "max_grade": 3, "goal": GOAL, "measure": DCG, "budget": 4
        }  # fmt: skip
        return Setting(self.pool, **(settings | options))

    def ranked(self, **options: object) -> object:
        settings = {
            "covariance": np.eye(2), "df": np.full((2, 2), 5.0), "tags": ("a", "b"),
            "confidence": 0.95,
        }  # fmt: skip
        value = options.pop("value", np.ones(2))
        return rank_runs(value, **(settings | options))


Case = tuple[str, Callable[[Given], object], type[ValueError], str]
WHOLE = "must be a whole number of at least 1, not"
BETWEEN = "must be a whole number between"
CUT = (
    "A budget can be cut into at most 100000 batches, not a budget of 300000 by a batch_size of 2."
)


def check(
    given: Given, call: Callable[[Given], object], error: type[ValueError], message: str
) -> None:
    """The call is refused with just this class and just this message."""
    with pytest.raises(error) as caught:
        call(given)
    assert type(caught.value) is error
    assert re.fullmatch(message, str(caught.value)), str(caught.value)


def parameters(groups: dict[str, list[Case]]) -> list[object]:
    return [
        pytest.param(call, error, message, id=f"{group}: {name}")
        for group, cases in groups.items()
        for name, call, error, message in cases
    ]
