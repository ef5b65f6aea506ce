"""The pairs within reach in strata of equal chances, for sample_eval and infAP."""

from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import NotForThisRound, ReportKind, no_one_chance


def make(row: Round, shown: EstimateSet) -> str:
    """Such files hold counts, no probabilities: they are true where chances were equal alone."""
    from estimation.core.library.files import strata_lines  # noqa: PLC0415  (SciPy: for workers)
    from estimation.core.sampling.designs import DesignError  # noqa: PLC0415
    from estimation.services.report_files.sampled import sampled  # noqa: PLC0415

    found = sampled(row, shown)
    try:
        lines = strata_lines(found.pool, found.pair, found.grades, found.inclusion)
    except DesignError as error:
        how = "Draw with the rule “the same for all pairs” for such a file; prels.txt has the rest."
        raise NotForThisRound(f"Not of this round: {error}. {how}") from None
    return "".join(lines)


STRATA = ReportKind(
    "qrels-strata.txt",
    "Five columns with strata, as sample_eval (infAP, infNDCG) reads them.",
    content_type="text/plain; charset=utf-8",
    make=make,
    group="Judgments",
    why_not=no_one_chance,
)
