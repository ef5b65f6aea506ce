"""A further report file, collection.zip, and sentences that say what each is good for."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def remove_collections(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Earlier versions do not know the file; it is made anew on request."""
    reports = apps.get_model("estimation", "Report").objects.using(editor.connection.alias)
    reports.filter(name="collection.zip").delete()


class Migration(migrations.Migration):

    dependencies = [
        ('estimation', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='report',
            name='name',
            field=models.CharField(choices=[('estimates.csv', 'Every run, measure and estimator, for spreadsheets.'), ('estimates.json', 'The same with covariances, verdicts and the design.'), ('qrels.txt', 'Mean grades as trec_eval reads them; scoring runs on them is no estimate.'), ('judgments.csv', 'Every label with its assessor and inclusion probability.'), ('report.html', 'To read and to print: what was evaluated, how, and what came out.'), ('collection.zip', 'Judgments and probabilities, from which “manage.py score” estimates further runs.')], max_length=20),
        ),
        migrations.RunPython(migrations.RunPython.noop, remove_collections),
    ]
