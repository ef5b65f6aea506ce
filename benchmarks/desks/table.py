"""Rows of the desks, each beside ours; who could not be measured has one too."""

from collections.abc import Iterator, Mapping

from benchmarks.clients import PEOPLE, NoAnswer
from benchmarks.desks.own import NAMES, PAGE
from benchmarks.desks.trials import Lost, NotInstalled, Took
from benchmarks.figures import Figure

LONGEST = 160  # letters of a reason


def rows(found: Mapping[str, Took | Exception]) -> Iterator[Figure]:
    """Of each desk by its name: what it took, or why there is no figure.

    Those of others stand beside our page, which is what people see; ours beside the least that
    anybody else takes.
    """
    took = {name: each for name, each in found.items() if isinstance(each, Took)}
    others = [name for name in took if name not in NAMES]
    least = min(others, key=lambda name: took[name].cost, default="")
    for name, each in found.items():
        work = f"one judgment, {name}, {PEOPLE} clients"
        if isinstance(each, Exception):
            yield Figure(work, None, "ms", why=reason(each))
            continue
        beside = least if name in NAMES else PAGE
        reference = took[beside].cost if beside in took else None
        yield Figure(f"{work}{kept(each)}", each.cost, "ms", beside, reference)
        yield Figure(f"{work}: 95th percentile", each.p95, "s", "in the middle", each.median)


def kept(took: Took) -> str:
    """What is said of labels that nobody asked for; nothing if there are none."""
    if not took.beyond:
        return ""
    doubles = f", {took.doubles} by the same person" if took.doubles else ""
    return f" ({took.beyond} of {took.labels} labels beyond the one wanted of a pair{doubles})"


def reason(error: Exception) -> str:
    """Why something failed, as a cell of a table."""
    told = isinstance(error, NoAnswer | Lost | NotInstalled)
    said = " ".join((str(error) if told else repr(error)).split()).replace("|", "/")
    return f"not measured: {said[:LONGEST]}"
