"""What organizers have looked at in their queue, so that it stands apart. No label hangs on it."""

from django.db import transaction

from judging.errors import UserError
from judging.models import Assignment, Campaign, SeenItem, User
from judging.services import audit, present

Kind = SeenItem.Kind


def mark(*, campaign: Campaign, by: User, kind: str, target: int, version: str) -> SeenItem:
    """Nothing more is to be done about it, as it is now; twice is as once.

    Raises UserError ``kind_unknown``, ``gone`` (404).
    """
    _check(campaign, kind, target)
    with transaction.atomic():
        row, created = SeenItem.objects.get_or_create(
            campaign=campaign,
            kind=kind,
            target=target,
            version=version[:40],
            defaults={"seen_by": by},
        )
        if created:
            audit.record("mark as seen", by=by, campaign=campaign, target=row, kind=kind, of=target)
    return row


def unmark(*, campaign: Campaign, by: User, kind: str, target: int) -> None:
    """It is to be looked at again. Raises UserError ``kind_unknown``, ``gone`` (404)."""
    _check(campaign, kind, target)
    with transaction.atomic():
        rows = SeenItem.objects.filter(campaign=campaign, kind=kind, target=target)
        if rows.delete()[0]:
            audit.record("mark as unseen", by=by, campaign=campaign, kind=kind, of=target)


def _check(campaign: Campaign, kind: str, target: int) -> None:
    if kind not in Kind.values:
        expected = " or ".join(Kind.values)
        raise UserError("kind_unknown", f"No such kind. Expected {expected}.", field="kind")
    pairs = campaign.pairs.filter(pk=target)
    assignments = Assignment.objects.filter(campaign=campaign, pk=target)
    if not (pairs if kind == Kind.APART else assignments).exists():
        raise present.gone("This pair")
