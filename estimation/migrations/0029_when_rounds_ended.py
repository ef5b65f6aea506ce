from django.db import migrations


def fill(apps, schema_editor):
    """Rounds that were stopped before have the time of the entry that tells of it."""
    Round, Entry = apps.get_model("estimation", "Round"), apps.get_model("judging", "AuditEntry")
    for row in Round.objects.filter(state="stopped"):
        told = Entry.objects.filter(
            campaign=row.campaign_id, action="stop round", target=f"round {row.pk}"
        )
        at = told.order_by("-pk").values_list("created", flat=True).first()
        if at and row.stopping and "ended" not in row.stopping:
            stopping = row.stopping | {"ended": at.isoformat()}
            Round.objects.filter(pk=row.pk).update(stopping=stopping)


class Migration(migrations.Migration):

    dependencies = [
        ('estimation', '0028_further_labels'),
        ('judging', '0001_initial'),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
