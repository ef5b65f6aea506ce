"""What the steps of the library are given: of the right kind, or an error says what it must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..arrays import kind_of, listed
from ..data.pool import Pool
from ..data.ranked_lists import PoolError, RankedLists

if TYPE_CHECKING:
    from ..rounds.results import DrawnRound

RUNS = "RankedLists (see read_runs and rank_scores)"


def check_kind(
    value: object, *kinds: type, name: str, see: str, error: type[ValueError] = ValueError
) -> None:
    """Raise an error unless a value is of one of these classes; `see` says where they come from."""
    if not isinstance(value, kinds):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise error(f"{name} must be {wanted} (see {see}), not {kind_of(value)}")


def check_pool(pool: object) -> None:
    """Raise PoolError unless it is a pool."""
    check_kind(pool, Pool, name="pool", see="pool_runs", error=PoolError)


def check_drawn(drawn: DrawnRound) -> None:
    """Raise ValueError unless it is what a round drew, or somebody else."""
    if not hasattr(drawn, "intervals"):
        told = "what draw_round, together or given_round returned"
        raise ValueError(f"drawn must be {told}, not {kind_of(drawn)}")


def check_runs(runs: object, *, name: str) -> None:
    """Raise PoolError unless these are runs by their names."""
    if not isinstance(runs, Mapping):
        raise PoolError(f"{name} must be a mapping of names to {RUNS}, not {kind_of(runs)}")
    for tag, run in runs.items():
        check_text(tag, name=f"a name of {name}")
        if not isinstance(run, RankedLists):
            raise PoolError(f"{name}[{tag!r}] must be {RUNS}, not {kind_of(run)}")


def check_of_topics(runs: Mapping[str, RankedLists], topics: Iterable[str], *, name: str) -> None:
    """Raise PoolError if these runs return nothing for any of the topics: all would have 0."""
    wanted, returned = set(topics), {topic for run in runs.values() for topic in run.topics}
    if wanted and returned and not wanted & returned:
        told = f"{name} return nothing for the topics {listed(sorted(wanted))}"
        raise PoolError(f"{told}; they have the topics {listed(sorted(returned))}")


def named_topics(topics: Iterable[str]) -> list[str]:
    """Return topics in order, each once; PoolError if it is one text, or not of texts."""
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        raise PoolError(f"topics must be a list of texts, not {topics!r}")
    every = set(topics)
    for each in every:
        check_text(each, name="a topic")
    return sorted(every, key=str.encode)


def check_text(value: object, *, name: str) -> None:
    """Raise PoolError unless it is a text."""
    if not isinstance(value, str):
        raise PoolError(f"{name} must be a text, not {value!r}")


def check_seeds(seeds: object, number: int) -> None:
    """Raise ValueError unless there is a seed for each of so many rounds."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds must be a list of texts, one for each round, not {seeds!r}")
    there = len(list(seeds))
    if there != number:
        raise ValueError(f"seeds must hold one for each round, {number}, not {there}")
