"""What people say of a run: its team, a description, and the fields that a campaign has for it.

It is kept with the file that brought the run, and comes along to a new version. No number rests on
it. What is overwritten stands in the audit log, so that nothing typed is lost.
"""

from collections.abc import Mapping, Sequence

from django.db import transaction

from judging.errors import UserError
from judging.models import Campaign, Upload, User
from judging.services import audit, campaigns, present

MAX_TEXT, MAX_DESCRIPTION = 200, 4000
MAX_FIELDS = 30


def describe(
    *,
    upload: Upload,
    by: User,
    team: str | None = None,
    description: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> Upload:
    """Changes some of what is said of a run; what is left out stays what it is by then.

    Raises UserError ``field_unknown`` for a name that the campaign does not have, ``too_long``, and
    ``gone`` (404).
    """
    given = {"team": team, "description": description}
    texts = {name: text.strip() for name, text in given.items() if text is not None}
    values = {name: text.strip() for name, text in (fields or {}).items()}
    _check_lengths({**texts, **values})
    with transaction.atomic():
        rows = Upload.objects.select_for_update(no_key=True).select_related(None)
        now = present.now(rows.filter(pk=upload.pk), upload.name)
        _check_known(values, upload.campaign)
        about = {**now.about, **texts, "fields": {**now.about.get("fields", {}), **values}}
        if about != {"fields": {}, **now.about}:
            Upload.objects.filter(pk=upload.pk).update(about=about)
            audit.record(
                "describe run", by=by, campaign=upload.campaign_id, target=upload, before=now.about
            )
    upload.about = about
    return upload


def _check_lengths(texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        most = MAX_DESCRIPTION if name == "description" else MAX_TEXT
        if len(text) > most:
            message = f"{name}: expected at most {most} characters, found {len(text)}."
            raise UserError("too_long", message, field=name)


def _check_known(values: Mapping[str, str], campaign: Campaign) -> None:
    for name in values:
        if name not in campaign.run_fields:
            message = f"This campaign has no field “{name}” of runs. Add it on the list of runs."
            raise UserError("field_unknown", message, field="fields")


def set_fields(*, campaign: Campaign, by: User, names: Sequence[str]) -> None:
    """Says which fields runs have. What was said under a name that goes is kept, and comes back
    with the name.

    Raises UserError ``fields_invalid``.
    """
    wanted = [" ".join(name.split()) for name in names]
    wanted = [name for name in wanted if name]
    _check_names(wanted)
    with transaction.atomic():
        now = campaigns.lock(campaign.pk)
        if now.run_fields != wanted:
            Campaign.objects.filter(pk=campaign.pk).update(run_fields=wanted)
            audit.record(
                "change fields of runs", by=by, campaign=campaign, target=campaign,
                before=now.run_fields, fields=wanted,
            )  # fmt: skip
    campaign.run_fields = wanted


def _check_names(names: Sequence[str]) -> None:
    long = next((name for name in names if len(name) > MAX_TEXT), None)
    twice = next((name for name in names if names.count(name) > 1), None)
    if long or twice or len(names) > MAX_FIELDS:
        what = f"“{twice}” once" if twice else f"names of at most {MAX_TEXT} characters"
        what = f"at most {MAX_FIELDS} names" if len(names) > MAX_FIELDS else what
        raise UserError("fields_invalid", f"Expected {what}.", field="fields")
