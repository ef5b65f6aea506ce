"""What batches of an adaptive round were planned by, as its judged collection has it.

See `adaptive` for the columns. Chances hang on what was found before a batch as well, which is told
as it was then: a label that was corrected since changes no chance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.data.labels import pair_name
from estimation.core.rounds.adaptive.finds import Finds
from estimation.core.rounds.adaptive.frame import AdaptiveFrame
from estimation.core.rounds.adaptive.grades import Features, LearnedGrades
from estimation.core.rounds.adaptive.scoring import OF_SCORES, OF_TRUST, Scoring
from estimation.core.rounds.adaptive.state import AdaptiveState
from estimation.formats.collections.ranked import RankedReading
from estimation.formats.collections.reading import Row

MODELS = "models.tsv.gz"
NEIGHBORS = 0  # the number of the first parameter of what was found; `_decline` has the second


def _decline(features: Features) -> int:
    """The number of the parameter that is the last of a model: behind those of all pairs."""
    return features.parameters + len(features.pool) + 1


def model_rows(state: AdaptiveState, features: Features) -> Row:
    """By batch, level and parameter."""
    empty = np.array([], dtype=np.int64)
    parts: list[tuple[NDArray[Any], ...]] = [(empty, empty, empty, empty.astype(np.float64))]
    for number, step in enumerate(state.steps, start=1):
        if step.model is not None:
            found = step.model.coefficients
            level, place = np.indices(found.shape).reshape(2, -1)
            numbers = np.append(np.arange(features.parameters) + 1, [NEIGHBORS, _decline(features)])
            batch = np.full(found.size, number)
            parts.append((batch, step.model.levels[level], numbers[place], found.ravel()))
            if step.model.scoring is not None:
                told = step.model.scoring.numbers
                place = _decline(features) + 1 + np.arange(len(told))
                whole = (np.full(len(told), each) for each in (number, step.model.levels[0]))
                parts.append((*whole, place, told))
            if step.model.found is not None:
                first = features.parameters + 1
                parts.append(_find_rows(number, step.model.levels, step.model.found, first))
    names = ("batch", "level", "parameter", "coefficient")
    columns = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    return MODELS, columns["batch"], columns


def _find_rows(number: int, levels: IntArray, found: Finds, first: int) -> tuple[NDArray[Any], ...]:
    """What was found by a batch: pairs after the parameters of its model."""
    level, at = np.nonzero(found.reach)
    return np.full(len(at), number), levels[level], first + found.pair[at], found.reach[level, at]


def read_models(
    reading: RankedReading, frame: AdaptiveFrame, *, planned: int
) -> dict[int, LearnedGrades]:
    """What was learned, by batch: a coefficient for every level and parameter."""
    table = reading.table(MODELS)
    levels, parameters = frame.levels, frame.features.parameters
    batch, level, parameter = (table.whole(name) for name in ("batch", "level", "parameter"))

    def named(row: int) -> str:
        return f"parameter {parameter[row]} of level {level[row]} in batch {batch[row]}"

    reading.refuse_repeats(table, (parameter, level, batch), named, "parameter")
    listed = ", ".join(map(str, levels.tolist()))
    reading.refuse(table, batch > planned, "batch", "a batch of steps.tsv.gz", named)
    reading.refuse(table, ~np.isin(level, levels), "level", f"one of {listed}", named)
    wanted = f"one of the {parameters} parameters that the lists and predictions make"
    share, decline = table.numbers["coefficient"], _decline(frame.features)
    of_pairs = (parameter > parameters) & (parameter < decline)
    with_neighbors = np.unique(batch[parameter == NEIGHBORS])
    with_decline = np.unique(batch[parameter == decline])
    of_found = np.isin(batch, with_neighbors) | (frame.design.measure.family == "ratio")
    of_scores = (parameter > decline) & (parameter <= decline + _of_scores(frame))
    of_scores &= level == levels[0]
    foreign = (of_pairs & ~of_found) | ((parameter > decline) & ~of_scores)
    foreign |= (parameter == decline) & ~np.isin(batch, with_neighbors)
    reading.refuse(table, foreign, "parameter", wanted, named)
    wrong = of_pairs & ~((share > 0.0) & (share <= 1.0))
    reading.refuse(
        table, wrong, "coefficient", "a share of judgments, above 0 and at most 1", named
    )
    most = np.where(parameter <= decline + OF_TRUST, 1.0, np.inf)
    wrong = of_scores & (parameter <= decline + OF_TRUST + 1) & ~((share >= 0.0) & (share <= most))
    reading.refuse(table, wrong, "coefficient", "a part from 0 to 1, or an error", named)
    reading.go_on()
    of_model = ~of_pairs & ~of_scores
    learned, found = np.unique(batch[of_model], return_counts=True)
    needed = parameters + np.isin(learned, with_neighbors) + np.isin(learned, with_decline)
    for at in np.flatnonzero(found != len(levels) * needed).tolist():
        wanted = f"{needed[at]} coefficients in batch {learned[at]} for each of the levels {listed}"
        reading.error(MODELS, None, "coefficient", wanted, f"{found[at]} in all")
    told = np.bincount(batch[of_scores], minlength=planned + 1)[learned]
    for at in np.flatnonzero(told != _of_scores(frame)).tolist():
        wanted = f"{_of_scores(frame)} numbers of scores in batch {learned[at]}"
        reading.error(MODELS, None, "coefficient", wanted, f"{told[at]}")
    reading.go_on()
    homeless = (of_pairs | of_scores) & ~np.isin(batch, learned)
    reading.refuse(table, homeless, "batch", "a batch with coefficients", named)
    reading.go_on()
    last = np.where(parameter == NEIGHBORS, decline - 1, parameter)
    order = np.lexsort((last, level, batch))
    grids = np.split(share[order][of_model[order]], np.cumsum(found))[: len(found)]
    models = {}
    for number, grid in zip(learned.tolist(), grids, strict=True):
        scores = share[order][(of_scores & (batch == number))[order]]
        own = np.flatnonzero(of_pairs & (batch == number))
        place = np.searchsorted(levels, level[own]), parameter[own] - parameters - 1
        finds = _finds(len(levels), *place, share[own])
        knows = len(own) > 0 or number in with_neighbors
        given = frozen(grid.reshape(len(levels), -1)), finds if knows else None
        models[number] = LearnedGrades(levels, *given, Scoring.of(scores) if len(scores) else None)
    return models


def _of_scores(frame: AdaptiveFrame) -> int:
    """How many numbers of a batch tell of scores."""
    return 0 if frame.features.scored is None else OF_SCORES + len(frame.pool.runs)


def _finds(levels: int, level: IntArray, pair: IntArray, share: FloatArray) -> Finds:
    pairs, at = np.unique(pair, return_inverse=True)
    reach = np.zeros((levels, len(pairs)))
    reach[level, at] = share
    return Finds(frozen(pairs), frozen(reach))


def check_finds(reading: RankedReading, frame: AdaptiveFrame, state: AdaptiveState) -> None:
    """What was found before a batch was drawn before it, and no level more often than a lower."""
    drawn = np.full(len(frame.pool), len(state.steps) + 1)
    drawn[state.pair] = state.batch
    for number, step in enumerate(state.steps, start=1):
        if step.model is None or (found := step.model.found) is None:
            continue
        rises = (np.diff(found.reach, axis=0) > 0.0).any(axis=0)
        for pair in found.pair[(drawn[found.pair] >= number) | rises].tolist():
            wanted = f"finds of batches before {number}, shares that never rise with the level"
            reading.error(MODELS, None, "parameter", wanted, pair_name(pair, frame.pool))
    reading.go_on()
