"""Which pairs were drawn in some batches is read from an index alone; see judging's 0011."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0021_topics_and_predictions")]

    operations = [
        migrations.AlterField(
            model_name="draw",
            name="round",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="draws",
                to="estimation.round",
            ),
        ),
        migrations.AddIndex(
            model_name="draw",
            index=models.Index(
                fields=["round", "batch_number", "pair", "position"], name="draw_of_label"
            ),
        ),
    ]
