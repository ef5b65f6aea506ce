from django.db import migrations, models


class Migration(migrations.Migration):
    """Sessions of an account that was blocked stay ended when it is let in again."""

    dependencies = [("judging", "0026_labels_from_assignments")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="session_epoch",
            field=models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=16
            ),
        ),
    ]
