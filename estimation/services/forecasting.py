"""What a round is foretold to bring, worked out with its estimates and stored with their matrices.

Stored forecasts are never rewritten: what was foretold early can be held against what came.
"""

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.planning.forecasts import forecast, supports
from estimation.core.planning.foretold import Forecast
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.services import finite


def foretold(collection: RoundCollection, joined: Pool, result: MeasureResult) -> Forecast | None:
    """Of the measure that the round was made for; None where there is none.

    Several rounds together, whole topics and active sampling have none; nor has a round that is
    estimated with the help of predictions, or has guaranteed intervals, which fall otherwise. Nor
    has an adaptive round whose batches up to now are empty: nothing says what to expect.
    """
    drawn = collection.drawn
    if not isinstance(drawn, PairRound | AdaptiveRound) or collection.predictions is not None:
        return None
    if isinstance(drawn, AdaptiveRound) and not len(drawn.sample.pair):
        return None
    if not supports(drawn, result.measure) or result.interval != "student":
        return None
    found = forecast(
        Scope.of(collection.pool, joined),
        drawn,
        batches=drawn.used if isinstance(drawn, PairRound) else drawn.planned,
        result=result,
        max_grade=collection.max_grade,
        labels=collection.labels,
    )
    finite.check_plain({"forecast": found.facts()})
    return found
