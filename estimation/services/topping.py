"""What a round is to add to: what is judged by the time of its draw.

Together with earlier Poisson rounds it fills up the probabilities that pairs have to be in their
complete batches. These follow from designs, and from how many batches are complete, but from no
grade and from no draw (`estimation.core.sampling.top_up`). A top-up that is estimated alone takes
every pair for certain that is in a complete batch of any round, by whatever method, or was judged
in a batch that a round left open when it ended; its probabilities then follow from the past, given
which its estimates are unbiased. Which pairs of an open batch people came to first may hang on
anything, so that they are no sample, and count for nothing in the round that ended: what is taken
for certain need not be one.

Either way its random numbers must be its own: a pair that an earlier round left out by the same
number would be known to have a large one.
"""

import numpy as np
from django.db.models import QuerySet

from estimation.core.arrays import BoolArray, FloatArray, IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import BETWEEN, part_names
from estimation.core.data.scope import Scope, find_pairs
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.adaptive.top_ups import continued, topped_up
from estimation.core.rounds.combining import union_of
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling.designs import Design
from estimation.core.sampling.methods import of_pairs_with
from estimation.core.sampling.top_up import beside, top_up
from estimation.models import Draw, Round
from estimation.selectors import draws_of
from estimation.services import files, pools, together
from estimation.services.choices import complete, kept_draws
from judging.errors import UserError
from judging.labels import PlacedPairs, label_columns
from judging.models import Campaign


def added_to(row: Round, pool: Pool) -> dict[int, int]:
    """The rounds that a top-up adds to, by their number, with how many batches of each."""
    found = complete(row.campaign)
    if not row.with_earlier:
        return found
    counting = [number for number, why in together.faults(row, pool).items() if not why]
    return {number: found[number] for number in counting if number in found}


def plan_of(row: Round, pool: Pool, design: Design, costs: FloatArray | None) -> Design:
    """What a design as if nothing was judged becomes, by the choices of the round.

    Of a top-up what it adds to, and of other Poisson rounds that count earlier ones what these give
    with it, if a batch of them is complete; otherwise the design itself.

    Raises UserError ``design_impossible`` (409) where a top-up has nothing to add to, or another
    round has its seed; DesignError where nothing is left to draw.
    """
    if not row.top_up:
        return _beside(row, pool, design)
    batches = _to_add_to(row, pool)
    before = _chances(row, pool, batches) if row.with_earlier else None
    earlier = judged_in(row.campaign, pool).astype(np.float64) if before is None else before
    return top_up(design, earlier, costs=costs)


def learning_plan_of(row: Round, pool: Pool, plan: AdaptivePlan) -> AdaptivePlan:
    """The same of an adaptive round: a top-up knows what is judged before it begins.

    Raises as `plan_of`.
    """
    if not row.top_up:
        return plan
    batches = _to_add_to(row, pool)
    judged = np.flatnonzero(judged_in(row.campaign, pool))
    alone = topped_up(plan, Past.alone(judged, pairs=len(pool)))
    if not row.with_earlier or alone.is_census:  # where all will be judged, values are exact alone
        return alone
    return topped_up(plan, _continued(row, pool, max(batches), batches, judged))


def _continued(
    row: Round, pool: Pool, number: int, batches: dict[int, int], judged: IntArray
) -> Past:
    """What a round starts from that continues another, its complete batches alone."""
    before = Round.objects.select_related("pool").get(campaign=row.campaign_id, number=number)
    design, sample = files.path_of(before.design_file), files.path_of(before.sample_file)
    drawn = load_round(design, sample)
    if before.pool is None or not isinstance(drawn, AdaptiveRound):
        raise TypeError(f"round {number} is no adaptive round that was drawn")
    smaller = pools.load(before.pool)
    frame, state = drawn.design.frame(smaller), drawn.prefix(smaller, batches[number]).sample
    return continued(Scope.of(smaller, pool), frame, state, judged, budget=float(row.budget))


def _to_add_to(row: Round, pool: Pool) -> dict[int, int]:
    """The rounds that a top-up adds to, of which there must be some."""
    _check_seed(row)
    batches = added_to(row, pool)
    if not batches:
        raise UserError("design_impossible", _nothing(row, pool), status=409)
    return batches


def _beside(row: Round, pool: Pool, design: Design) -> Design:
    """With one seed for several rounds the union is another, and is not foretold."""
    if not row.with_earlier or design.method not in of_pairs_with("top_up"):
        return design
    batches = added_to(row, pool)
    shared = row.campaign.rounds.filter(number__in=batches, seed=row.seed).exists()
    return beside(design, _chances(row, pool, batches)) if batches and not shared else design


def judged_in(campaign: Campaign, pool: Pool) -> BoolArray:
    """Which pairs of a pool are in a complete batch of any round, or kept of others, shape (N,)."""
    judged = np.zeros(len(pool), dtype=np.bool_)
    for draws in _judged_draws(campaign):
        _, place = _places(draws, pool)
        judged[place[place >= 0]] = True
    return judged


def labels_of(row: Round, pool: Pool) -> LabelRows | None:
    """What a round that learns knows before its first batch; None where it knows nothing."""
    learns = row.top_up and row.sampling.draws == "batches"
    return judged_labels(row.campaign, pool) if learns else None


def judged_labels(campaign: Campaign, pool: Pool) -> LabelRows:
    """What was said of these pairs, by their places in the pool, however many rounds drew them."""
    found, seen = LabelRows(*np.zeros((2, 0), dtype=np.int64)), np.zeros(0, dtype=np.int64)
    for draws in _judged_draws(campaign):
        placed = PlacedPairs.of(draws, "id")
        once = (np.diff(placed.pair, prepend=-1) > 0) & ~np.isin(placed.pair, seen)
        seen = np.append(seen, placed.pair[once])
        said = label_columns(placed.where(once, *placed.places)).counting()
        at = _place_of(said.places[0], *_places(draws, pool))
        pair, grade = at[at >= 0], said.grade[at >= 0]
        found = LabelRows(np.append(found.pair, pair), np.append(found.grade, grade))
    return found


def _place_of(draw: IntArray, known: IntArray, place: IntArray) -> IntArray:
    """Where what was drawn stands, by the places of what is known; -1 of the rest."""
    found = np.full(1 + max(int(draw.max(initial=0)), int(known.max(initial=0))), -1)
    found[known] = place
    return found[draw]


def _judged_draws(campaign: Campaign) -> tuple[QuerySet[Draw], QuerySet[Draw]]:
    return draws_of(campaign, complete(campaign)), kept_draws(campaign)


def _places(draws: QuerySet[Draw], pool: Pool) -> tuple[IntArray, IntArray]:
    """Row ids of what was drawn, and where its pairs stand in a pool, -1 of those outside."""
    names = ("pk", "pair__topic__topic_id", "pair__docno", "pair__other")
    numbers = {topic: number for number, topic in enumerate(pool.topics)}
    rows = [
        (pk, numbers[topic], BETWEEN.join(filter(None, (docno.encode(), other.encode()))))
        for pk, topic, docno, other in draws.order_by().values_list(*names).iterator()
        if topic in numbers and bool(other) == pool.is_of_preferences
    ]
    place = find_pairs(
        np.array([topic for _, topic, _ in rows], dtype=np.int64),
        np.array([name for _, _, name in rows], dtype=np.bytes_),
        among_topic=pool.topic,
        among_docno=part_names(pool),
    )
    return np.array([pk for pk, _, _ in rows], dtype=np.int64), place


def _chances(row: Round, pool: Pool, batches: dict[int, int]) -> FloatArray:
    """Of every pair to be in the union of the complete batches of rounds, shape (N,)."""
    rounds = Round.objects.filter(campaign=row.campaign_id, number__in=batches)
    found = []
    for each in rounds.select_related("pool").order_by("number"):
        part = together.Counted(each, batches[each.number]).part
        inclusion = part.design.inclusion(part.used)
        if each.pool is not None and each.pool.digest != pool.digest:
            inclusion = Scope.of(pools.load(each.pool), pool).spread(inclusion)
        found.append((each.seed, inclusion))
    return union_of(found)


def _check_seed(row: Round) -> None:
    others = row.campaign.rounds.exclude(pk=row.pk).exclude(state__in=Round.NOT_DRAWN)
    if other := others.filter(seed=row.seed).first():
        message = (
            f"A top-up needs random numbers of its own, and round {other.number} has its seed. "
            "Choose another seed, or leave it empty."
        )
        raise UserError("design_impossible", message, status=409, field="seed")


def _nothing(row: Round, pool: Pool) -> str:
    if not row.with_earlier:
        return (
            "There is nothing to top up: no batch of any round is complete. Wait for the first, or "
            "draw a round that is no top-up."
        )
    faults = together.faults(row, pool)
    told = [f"round {number}: {why}" for number, why in faults.items() if why]
    told += [f"round {number}: no batch is complete" for number, why in faults.items() if not why]
    of_each = f" ({'; '.join(told)})" if told else ""
    return (
        f"There is no round to top up together with{of_each}. Estimate this one alone, which takes "
        "all judged pairs for certain, or draw a round that is no top-up."
    )
