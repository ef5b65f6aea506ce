"""The judged collection of a round: what estimates of runs that arrive later need."""

import io

import numpy as np

from estimation.core.collection import JudgedCollection
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.labels import LabelRows
from estimation.formats.collections import write_collection
from estimation.models import Draw, EstimateSet, Round
from estimation.services import files, pools
from judging import selectors as judging


def collection_zip(row: Round, shown: EstimateSet) -> bytes:
    """The file, from the batches that the estimates rest on."""
    buffer = io.BytesIO()
    write_collection(buffer, collection_of(row, shown))
    return buffer.getvalue()


def collection_of(row: Round, shown: EstimateSet) -> JudgedCollection:
    if row.pool is None:
        raise ValueError(f"round {row.pk} has not been drawn")
    design = Design.load(files.path_of(row.design_file))
    # Whoever has the seed knows which pairs come next: it is told when none does.
    is_complete = shown.batches == design.batches
    return JudgedCollection.of(
        pools.load(row.pool),
        design,
        Sample.load(files.path_of(row.sample_file)),
        labels=_labels(row, shown.batches),
        batches=shown.batches,
        max_grade=row.campaign.max_grade,
        version=shown.provenance["evalsite"],
        seed=row.seed if is_complete else None,
    )


def _labels(row: Round, batches: int) -> LabelRows:
    draws = Draw.objects.filter(round=row, batch_number__lte=batches)
    positions = dict(draws.values_list("pair_id", "position"))
    rows = sorted(
        (positions[label.pair], label.grade) for label in judging.labels(draws.values("pair"))
    )
    pairs, grades = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return LabelRows(pairs, grades)
