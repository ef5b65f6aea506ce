"""How long a judgment takes is a choice of a round; it was half a minute for all."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0014_looks")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="seconds",
            field=models.PositiveIntegerField(default=30, help_text="that a judgment takes"),
        )
    ]
