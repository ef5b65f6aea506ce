import django.db.models.deletion
from django.db import migrations, models
from django.db.models import OuterRef, Subquery


def fill(apps, schema_editor):
    Assignment, Pair = (apps.get_model("judging", name) for name in ("Assignment", "Pair"))
    of_pair = Pair.objects.filter(pk=OuterRef("pair")).order_by().values("campaign")[:1]
    Assignment.objects.update(campaign=Subquery(of_pair))


class Migration(migrations.Migration):
    """The reference is checked once all rows have it: PostgreSQL changes no table before."""

    dependencies = [
        ('judging', '0024_norming'),
    ]

    operations = [
        migrations.AddField(
            model_name='assignment',
            name='campaign',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='judging.campaign'),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='assignment',
            name='campaign',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='judging.campaign'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['campaign', 'state', 'created', 'gold'], name='assignment_pace'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['campaign', 'changed'], name='assignment_latest'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['assessor', 'campaign', 'state', 'created', 'gold'], name='assignment_so_far'),
        ),
    ]
