"""Reports, methods and intervals are what their tables say: a further one is no migration."""

from django.db import migrations, models

import estimation.models


class Migration(migrations.Migration):

    dependencies = [
        ('estimation', '0010_draws_under_way'),
    ]

    operations = [
        migrations.AlterField(
            model_name='report',
            name='name',
            field=models.CharField(max_length=40),
        ),
        migrations.AlterField(
            model_name='round',
            name='interval',
            field=models.CharField(choices=estimation.models.interval_choices, default='student', max_length=20),
        ),
        migrations.AlterField(
            model_name='round',
            name='method',
            field=models.CharField(choices=estimation.models.method_choices, default='poisson', max_length=20),
        ),
    ]
