from django.db import migrations, models
from django.db.models import OuterRef, Q, Subquery


def fill(apps, schema_editor):
    """The grade of the judgment that counts, or would count."""
    Assignment, Judgment = (
        apps.get_model("judging", name) for name in ("Assignment", "Judgment")
    )
    said = Judgment.objects.filter(
        assignment=OuterRef("pk"), revision=OuterRef("revision") + OuterRef("set_aside")
    )
    Assignment.objects.exclude(revision=0, set_aside=0).update(
        grade=Subquery(said.order_by().values("grade")[:1])
    )


class Migration(migrations.Migration):
    """Labels are read from assignments, in whose index they are; that of judgments goes."""

    dependencies = [("judging", "0025_assignments_know_their_campaign")]

    operations = [
        migrations.RemoveIndex(model_name="assignment", name="assignment_of_label"),
        migrations.AddField(
            model_name="assignment",
            name="grade",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="judgment", name="judgment_of_label"),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                fields=["pair", "assessor", "revision", "grade"], name="assignment_of_label"
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=Q(grade__isnull=False) | Q(revision=0, set_aside=0),
                name="assignment_said_has_grade",
            ),
        ),
    ]
