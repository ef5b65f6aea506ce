"""What a preview tells is the same in one block of the pool and in many, and holds little."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data import blocks
from estimation.models import Round
from estimation.services import designing, pools, previews
from judging.models import Campaign, Document
from tests.support import evaluation
from tests.support.kept import Kept

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(kept: Kept) -> Campaign:
    return kept("previewed in blocks", lambda: evaluation.with_material(slug="blocks"))


def forget() -> None:
    """What was worked out of a pool is not known any more."""
    pools._load.cache_clear()


@pytest.mark.parametrize(
    "asked",
    [
        {"measure": "AP", "reported": ["nDCG@10", "P@5"]},
        {"method": "iid", "goal": "ranking"},
        {"method": "per-query", "budget": 60},
        {"labels": 2, "extra_share": 0.0, "further": 0.5},
        {"method": "adaptive", "reported": []},
        {"costs": "length"},
        {"measure": "#ofSwaps", "reported": [], "prior": "constant", "extra_share": 0.0},
    ],
    ids=lambda asked: "-".join(map(str, asked.values())),
)
def test_previews_and_draws_are_the_same_in_many_blocks(
    made: Campaign, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object]
) -> None:
    told, files = [], []
    for most in (1 << 18, 40):
        monkeypatch.setattr(blocks, "MOST_ENTRIES", most)
        forget()
        row = evaluation.drafted(made, **asked)
        assert row.preview["error"] is None
        told.append(row.preview)
        evaluation.draw(made, row)
        files.append((row.design_file, list(row.draws.values_list("position", "probability"))))
        Round.objects.filter(pk=row.pk).delete()
    forget()
    assert files[0] == files[1], "stored designs are named by their content"
    one, many = map(flat, told)
    numbers = [name for name, value in one.items() if isinstance(value, float)]
    assert len(numbers) > 20
    assert [many.pop(name) for name in numbers] == pytest.approx(
        [one.pop(name) for name in numbers], rel=1e-9, abs=1e-12
    )
    assert many == one


def flat(told: object, name: str = "") -> dict[str, object]:
    """Every number and text by where it stands."""
    if isinstance(told, dict):
        parts = [(key, value) for key, value in told.items() if key != "design"]
    elif isinstance(told, list):
        parts = list(enumerate(told))
    else:
        return {name: told}
    found: dict[str, object] = {}
    for key, value in parts:
        found |= flat(value, f"{name}/{key}")
    return found


def test_documents_without_text_are_those_that_no_document_is_of(made: Campaign) -> None:
    row = evaluation.drafted(made)
    _, pool = designing.pool_for(row)
    assert previews._without_text(row, pool) == 0
    names = sorted({name.decode() for name in pool.docno.tolist()})
    longest = max(names, key=len)
    gone = {longest, *names[::3]}
    upload = made.documents.first().upload
    Document.objects.filter(campaign=made, docno__in=gone).delete()
    for docno in ("a", "no document of the pool", f"{longest}, and more"):
        made.documents.create(upload=upload, docno=docno, text="something")
    assert previews._without_text(row, pool) == len(gone)
    swapped = replace(pool, other=pool.docno[::-1].copy())
    assert previews._without_text(row, swapped) == len(gone)


def test_documents_are_counted_without_a_set_of_all(made: Campaign) -> None:
    """As Python's bytes in a set a docno takes more than a hundred bytes."""
    row = evaluation.drafted(made)
    _, pool = designing.pool_for(row)
    number = 200_000
    docno = np.char.add(b"d", np.arange(10**6, 10**6 + number).astype("S7"))
    many = replace(
        pool,
        docno=docno,
        topic=np.zeros(number, dtype=np.int32),
        indptr=np.zeros(number + 1, dtype=np.int64),
        run=pool.run[:0],
        rank=pool.rank[:0],
    )
    tracemalloc.start()
    try:
        assert previews._without_text(row, many) == number
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 40 * number, taken / number


def test_no_other_split_is_looked_for_where_there_is_nothing_to_spend(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    best = previews.best_split
    monkeypatch.setattr(
        previews, "best_split", lambda *args, **asked: looked.append(1.0) or best(*args, **asked)
    )
    assert evaluation.drafted(made, extra_share=0.1).preview["split"] is None
    assert not looked
    evaluation.drafted(made, labels=2)
    assert looked
