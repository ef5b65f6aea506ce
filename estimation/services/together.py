"""Rounds that are estimated together with the ones before them.

Such estimates are unbiased if no round was planned from what another had found; see
`estimation.core.combining`. All drawn rounds with a lower number take part that are from the same
pool and by the same method.
"""

from dataclasses import dataclass

from estimation.core.combining import Part
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.models import Round
from estimation.selectors import complete_batches
from estimation.services import files


@dataclass(frozen=True)
class Counted:
    """A round, and how many of its batches are complete."""

    row: Round
    batches: int

    @property
    def part(self) -> Part:
        row = self.row
        design, sample = files.path_of(row.design_file), files.path_of(row.sample_file)
        return Part(Design.load(design), Sample.load(sample), self.batches, numbers=row.seed)


def before(row: Round) -> list[Counted]:
    """The rounds that are estimated together with a drawn one, as far as they are judged."""
    if not row.with_earlier:
        return []
    rows = Round.objects.filter(
        campaign=row.campaign_id, pool=row.pool_id, method=row.method, number__lt=row.number
    )
    counted = [Counted(each, complete_batches(each)) for each in rows.order_by("number")]
    return [each for each in counted if each.batches]
