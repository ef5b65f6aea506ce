"""Simulated trials without what a test of their values does not look at; see `plain_estimates`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from estimation.core.rounds.results import Evaluation
from estimation.research.trials import methods
from estimation.research.trials.methods import Outcome
from estimation.research.trials.settings import Setting
from tests.core.plain_estimates import values_alone, without


def _told_alone(_: Setting, seen: Callable[..., Evaluation], batches: Sequence[int]) -> Outcome:
    """In place of all that is told at looks."""
    found = seen(batches=batches[-1])
    return Outcome(found.results[0].estimate.value, found.judged_pairs, None)


@contextmanager
def trial_values_alone() -> Iterator[None]:
    """Let trials tell values and costs, without errors, intervals or verdicts."""
    with values_alone(), without({methods: {"_told": _told_alone}}):
        yield
