"""evalsite_core: how good ranking systems are, from few judgments, with honest intervals.

The names below are what the library is meant to be used by; docs/library.md explains them. Each is
loaded when it is first used, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .archives import ArchiveError as ArchiveError
    from .data.labels import LabelError as LabelError
    from .data.labels import LabelRows as LabelRows
    from .data.pool import Pool as Pool
    from .data.preferences import preference_pool as preference_pool
    from .data.qrels import Qrels as Qrels
    from .data.qrels import SampledQrels as SampledQrels
    from .data.ranked_lists import PoolError as PoolError
    from .data.ranked_lists import RankedLists as RankedLists
    from .data.trec import read_prels as read_prels
    from .data.trec import read_qrels as read_qrels
    from .data.trec import read_runs as read_runs
    from .data.trec import read_strata as read_strata
    from .data.trec_lines import TrecError as TrecError
    from .inference.looks import Look as Look
    from .inference.ranks import Ranking as Ranking
    from .inference.unknown import Reason as Reason
    from .library.complete import CompleteEvaluation as CompleteEvaluation
    from .library.complete import CompleteMeasure as CompleteMeasure
    from .library.complete import evaluate_complete as evaluate_complete
    from .library.designing import make_design as make_design
    from .library.designing import pool_runs as pool_runs
    from .library.designing import rank_scores as rank_scores
    from .library.estimating import evaluate as evaluate
    from .library.estimating import given_round as given_round
    from .library.estimating import together as together
    from .library.files import write_prels as write_prels
    from .library.growing import carry_over as carry_over
    from .library.growing import top_up as top_up
    from .library.promises import PrecisionByBudget as PrecisionByBudget
    from .library.promises import expected_precision as expected_precision
    from .library.promises import precision_by_budget as precision_by_budget
    from .measures.kinds import MeasureError as MeasureError
    from .measures.table import Measure as Measure
    from .measures.table import parse_measure as parse_measure
    from .planning.planning import ExpectedPrecision as ExpectedPrecision
    from .rounds.active.lists import ActiveError as ActiveError
    from .rounds.active.rounds import ActivePlan as ActivePlan
    from .rounds.active.rounds import ActiveRound as ActiveRound
    from .rounds.adaptive.rounds import AdaptiveRound as AdaptiveRound
    from .rounds.adaptive.state import AdaptiveError as AdaptiveError
    from .rounds.adaptive.state import AdaptivePlan as AdaptivePlan
    from .rounds.combining import CombiningError as CombiningError
    from .rounds.combining import RoundsTogether as RoundsTogether
    from .rounds.given import GivenError as GivenError
    from .rounds.given import GivenRound as GivenRound
    from .rounds.results import EstimatorResult as EstimatorResult
    from .rounds.results import Evaluation as Evaluation
    from .rounds.results import MeasureResult as MeasureResult
    from .rounds.results import Verdicts as Verdicts
    from .rounds.rounds import PairRound as PairRound
    from .rounds.rounds import TopicRound as TopicRound
    from .rounds.rounds import draw_round as draw_round
    from .rounds.rounds import load_round as load_round
    from .rounds.topics.designs import QueryDesign as QueryDesign
    from .rounds.topics.designs import QueryError as QueryError
    from .sampling.designs import Design as Design
    from .sampling.designs import DesignError as DesignError
    from .sampling.goals import Goal as Goal
    from .sampling.goals import GoalError as GoalError
    from .sampling.goals import absolute as absolute
    from .sampling.goals import baseline as baseline
    from .sampling.goals import pair as pair
    from .sampling.goals import ranking as ranking
    from .sampling.goals import single as single
    from .sampling.goals import winner as winner
    from .sampling.interval_kinds import INTERVAL_KINDS as INTERVAL_KINDS
    from .sampling.methods import SAMPLING_METHODS as SAMPLING_METHODS
    from .sampling.priors import Prior as Prior
    from .sampling.priors import PriorError as PriorError
    from .sampling.priors import make_prior as make_prior
    from .sampling.samples import Served as Served

    __version__: str

_WHERE = {
    ".archives": ("ArchiveError",),
    ".data.labels": ("LabelError", "LabelRows"),
    ".data.pool": ("Pool",),
    ".data.preferences": ("preference_pool",),
    ".data.qrels": ("Qrels", "SampledQrels"),
    ".data.ranked_lists": ("PoolError", "RankedLists"),
    ".data.trec": ("read_prels", "read_qrels", "read_runs", "read_strata"),
    ".data.trec_lines": ("TrecError",),
    ".inference.looks": ("Look",),
    ".inference.ranks": ("Ranking",),
    ".inference.unknown": ("Reason",),
    ".library.complete": ("CompleteEvaluation", "CompleteMeasure", "evaluate_complete"),
    ".library.designing": ("make_design", "pool_runs", "rank_scores"),
    ".library.estimating": ("evaluate", "given_round", "together"),
    ".library.files": ("write_prels",),
    ".library.growing": ("carry_over", "top_up"),
    ".library.promises": ("PrecisionByBudget", "expected_precision", "precision_by_budget"),
    ".measures.kinds": ("MeasureError",),
    ".measures.table": ("Measure", "parse_measure"),
    ".planning.planning": ("ExpectedPrecision",),
    ".rounds.active.lists": ("ActiveError",),
    ".rounds.active.rounds": ("ActivePlan", "ActiveRound"),
    ".rounds.adaptive.rounds": ("AdaptiveRound",),
    ".rounds.adaptive.state": ("AdaptiveError", "AdaptivePlan"),
    ".rounds.combining": ("CombiningError", "RoundsTogether"),
    ".rounds.given": ("GivenError", "GivenRound"),
    ".rounds.results": ("EstimatorResult", "Evaluation", "MeasureResult", "Verdicts"),
    ".rounds.rounds": ("PairRound", "TopicRound", "draw_round", "load_round"),
    ".rounds.topics.designs": ("QueryDesign", "QueryError"),
    ".sampling.designs": ("Design", "DesignError"),
    ".sampling.goals": (
        *("Goal", "GoalError", "absolute", "baseline", "pair", "ranking", "single", "winner"),
    ),
    ".sampling.interval_kinds": ("INTERVAL_KINDS",),
    ".sampling.methods": ("SAMPLING_METHODS",),
    ".sampling.priors": ("Prior", "PriorError", "make_prior"),
    ".sampling.samples": ("Served",),
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE)  # noqa: PLE0605 - one list of names, and a test that types know them all


if not TYPE_CHECKING:  # type checkers shall refuse names that are not there

    def __getattr__(name: str) -> Any:
        if name in _MODULE:
            value = getattr(import_module(_MODULE[name], __name__), name)
            globals()[name] = value
            return value
        if name == "__version__":
            return _version()
        meant = "" if name.startswith("_") else _nearest(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE, "__version__"})


def _nearest(name: str) -> str:
    return str(import_module(".arrays", __name__).nearest(name, _MODULE))


def _version() -> str:
    """The version of the wheel, or of the checkout that this is a part of."""
    if __name__ == "evalsite_core":
        return str(import_module("importlib.metadata").version("evalsite-core"))
    project = import_module("pathlib").Path(__file__).resolve().parents[2] / "pyproject.toml"
    return str(import_module("tomllib").loads(project.read_text("utf-8"))["project"]["version"])
