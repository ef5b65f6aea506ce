from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('estimation', '0029_when_rounds_ended'),
    ]

    operations = [
        migrations.AddField(
            model_name='estimateset',
            name='ratio_bias',
            field=models.JSONField(blank=True, default=dict, help_text='what was taken off values by ratio measures, on average over runs, by measure'),
        ),
    ]
