"""Predicted grades: the loader of their files (a kind of upload), and what rounds make of them.

Tables of costs are files of the same kind, told by their header.
"""

from pathlib import PurePosixPath

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.pool import Pool
from estimation.core.data.scope import find_pairs
from estimation.core.rounds.topics.grade_models import GradeModel, predicted_grades
from estimation.formats.predictions import (
    PredictionFile,
    load_predictions,
    read_predictions,
    save_predictions,
)
from estimation.models import Prediction
from estimation.services import files
from judging.errors import UserError
from judging.models import Upload
from judging.services.loaders import topic_ids
from judging.services.uploads import Load, Reading, loads


@loads(Upload.Kind.PREDICTIONS)
def load(reading: Reading) -> Load:
    """Reads predicted grades against topics and scale; waits for topics that are on their way."""
    topics = topic_ids(reading)
    if not topics:
        message = "Upload the topics first: predicted grades are read against them."
        reading.problems.fatal(None, "topic", message)
    best = reading.campaign.max_grade
    with reading.open() as file:
        found = read_predictions(
            file, reading.problems, max_grade=best, topics=topics, limits=reading.limits
        )
    if found is None:
        return lambda: None
    name = _name(reading.upload)
    if reading.campaign.predictions.filter(name=name).exists():
        message = f"The campaign has predicted grades or costs “{name}” already: rename the file."
        reading.problems.error(None, "", message)
    what = "costs" if found.form == "costs" else "predictions"
    reading.summary = {what: len(found.docnos), "pairs_left_out": found.dropped}
    return lambda: _create(reading, name, found)


def _name(upload: Upload) -> str:
    """The file's name without its ending: ``judge.tsv.gz`` brings ``judge``."""
    return PurePosixPath(upload.name.removesuffix(".gz")).stem or upload.name


def _create(reading: Reading, name: str, found: PredictionFile) -> None:
    Prediction.objects.create(
        campaign=reading.campaign,
        upload=reading.upload,
        name=name,
        form=Prediction.Form(found.form),
        max_grade=found.max_grade,
        file=files.keep_written("predictions", lambda file: save_predictions(file, found)),
        digest=found.digest,
        topic_count=len(found.topics),
        pair_count=len(found.docnos),
    )


def read_back(prediction: Prediction) -> PredictionFile:
    return load_predictions(files.path_of(prediction.file))


def grades_for(prediction: Prediction, pool: Pool) -> FloatArray:
    """The expected grade of every pair of the pool, shape (N,); NaN where nothing is predicted.

    Raises UserError ``scale_changed`` (409) if the campaign's scale has become another one,
    ValueError for a pool of preferences.
    """
    _check(prediction, pool, prediction.campaign.max_grade)
    found = read_back(prediction)
    rows = rows_in(found, pool)
    grades = np.full(len(pool), np.nan)
    grades[rows >= 0] = found.expected_grades()[rows[rows >= 0]]
    return grades


def model_for(prediction: Prediction, pool: Pool, max_grade: int) -> GradeModel:
    """Probabilities of the grades 0..max_grade of every pair; uniform where nothing is predicted.

    Raises UserError ``scale_changed`` (409) if the file was read for another scale, ValueError
    for a pool of preferences.
    """
    _check(prediction, pool, max_grade)
    found = read_back(prediction)
    rows = rows_in(found, pool)
    pairs = np.flatnonzero(rows >= 0)
    chances = found.distributions()[rows[pairs]]
    return predicted_grades(pool, pairs=pairs, probability=chances, max_grade=max_grade)


def _check(prediction: Prediction, pool: Pool, max_grade: int) -> None:
    if pool.is_of_preferences:
        raise ValueError("grades are predicted of documents; pool has pairs of documents")
    if prediction.max_grade != max_grade:
        message = (
            f"“{prediction.name}” predicts the grades 0 to {prediction.max_grade}, but the scale"
            f" goes to {max_grade} now. Upload predicted grades of this scale."
        )
        raise UserError("scale_changed", message, status=409)


def rows_in(found: PredictionFile, pool: Pool) -> IntArray:
    """The row of every pair of the pool, -1 where there is none."""
    places = {topic: place for place, topic in enumerate(found.topics)}
    topic = np.array([places.get(name, -1) for name in pool.topics], dtype=np.int64)[pool.topic]
    known = np.repeat(np.arange(len(found.topics)), np.diff(found.indptr))
    return find_pairs(topic, pool.docno, among_topic=known, among_docno=found.docnos)
