"""What the machine asks for, and what it was told."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.journal import Said

PLANS: list[dict[str, Any]] = [
    {"measure": "P@3", "budget": 4, "batch_size": 2, "method": "poisson"},
    {"measure": "DCG@3", "reported": ["P@2"], "budget": 6, "batch_size": 3, "method": "iid"},
    {"measure": "AP", "budget": 6, "batch_size": 3, "method": "active"},
    {"measure": "P@3", "budget": 90, "batch_size": 90, "labels": 2, "with_earlier": True},
    {"measure": "P@3", "budget": 5, "batch_size": 5, "method": "priority", "extra_share": 0.5,
     "goal": "baseline", "baseline": "run1"},
    {"measure": "P@3", "budget": 8, "batch_size": 4, "method": "query"},
    {"measure": "DCG@3", "reported": ["P@2"], "budget": 8, "batch_size": 3, "method": "adaptive"},
    {"measure": "P@3", "budget": 8, "batch_size": 2, "method": "adaptive", "goal": "winner",
     "stop_when": "best"},
    {"measure": "P@3", "budget": 5, "batch_size": 2, "top_up": True},
    {"measure": "P@3", "budget": 5, "batch_size": 3, "top_up": True, "with_earlier": True},
]  # fmt: skip
CHANGES: list[dict[str, Any]] = [
    {"budget": 7, "batch_size": 7},
    {"labels": 2},
    {"extra_share": 1.0},
    {"budget": 3, "batch_size": 1, "labels": 1},
    {"seed": "another"},
]
QUOTED = (
    "goal", "measure", "reported", "prior", "method", "floor", "with_earlier", "top_up",
    "labels", "extra_share", "budget", "batch_size", "seed",
)  # fmt: skip
"""What an answer says of a round, and what is said of it once it is drawn."""


@dataclass
class Told:
    """What the answers of the site amount to."""

    rounds: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: dict[int, dict[str, Any]] = field(default_factory=dict)
    labels: int = 0
    said: list[Said] = field(default_factory=list)
    corrected: list[Said] = field(default_factory=list)
    members: set[tuple[str, str]] = field(default_factory=set)
    uploads: set[int] = field(default_factory=set)
    excluded: set[str] = field(default_factory=set)
    spoken: dict[tuple[str, int], int] = field(default_factory=dict)
    """What people said of norming pairs, and what they wrote under which key."""
    remarks: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def raised(self, number: int) -> None:
        """Somebody had the round drawn: its pairs may get as many labels as it wants."""
        plan = self.rounds[number]
        self.labels = max(self.labels, plan["labels"] + (1 if plan["extra_share"] else 0))


class Fault(AssertionError):
    """Something that must never be."""


def quoted(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in QUOTED}
