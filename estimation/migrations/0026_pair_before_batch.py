"""The index of labels has the pair before the batch, so that each is looked up at its place."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0025_refused_reports")]

    operations = [
        migrations.RemoveIndex(model_name="draw", name="draw_of_label"),
        migrations.AddIndex(
            model_name="draw",
            index=models.Index(
                fields=["round", "pair", "batch_number", "position"], name="draw_of_label"
            ),
        ),
    ]
