"""Labels are read from indexes alone: these hold all that is asked, and begin as those of the
foreign keys did, in whose place they are."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0010_archives_of_files")]

    operations = [
        migrations.AlterField(
            model_name="assignment",
            name="pair",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="assignments",
                to="judging.pair",
            ),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="assignment",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="judgments",
                to="judging.assignment",
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["pair", "assessor", "revision"], name="assignment_of_label"),
        ),
        migrations.AddIndex(
            model_name="judgment",
            index=models.Index(
                fields=["assignment", "revision", "grade"], name="judgment_of_label"
            ),
        ),
    ]
