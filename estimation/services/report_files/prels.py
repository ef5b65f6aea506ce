"""The judged pairs with their probabilities, for programs that read prels."""

from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind, no_one_chance


def make(row: Round, shown: EstimateSet) -> str:
    """As `evalsite_core.read_prels` takes them: one over the probability estimates without bias."""
    from estimation.core.library.files import prels_lines  # noqa: PLC0415  (SciPy: for workers)
    from estimation.services.report_files.sampled import sampled  # noqa: PLC0415

    found = sampled(row, shown)
    chance = found.inclusion[found.pair]
    return "".join(prels_lines(found.pool, found.pair, found.grades, chance))


PRELS = ReportKind(
    "prels.txt",
    "Judged pairs with their inclusion probabilities, as statAP reads them.",
    content_type="text/plain; charset=utf-8",
    make=make,
    group="Judgments",
    why_not=no_one_chance,
)
