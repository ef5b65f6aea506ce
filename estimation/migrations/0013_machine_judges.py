"""Machine judges: language models that are asked for predicted grades."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.state import StateApps


def refuse_to_lose_answers(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """They were paid for."""
    rows = apps.get_model("estimation", "MachineAnswer").objects.using(editor.connection.alias)
    if count := rows.count():
        raise IrreversibleError(
            f"Answers of machine judges would be lost: {count}. Remove the machine judges first."
        )


class Migration(migrations.Migration):

    dependencies = [
        ('estimation', '0012_stored_pools'),
        ('judging', '0007_workers_say_what_they_serve'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MachineJudge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('endpoint', models.CharField(max_length=40)),
                ('model', models.CharField(max_length=200)),
                ('max_calls', models.PositiveIntegerField()),
                ('max_cost', models.FloatField(blank=True, null=True)),
                ('with_schema', models.BooleanField(default=True)),
                ('document_chars', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('idle', 'Not asked yet'), ('asking', 'Asking'), ('stopping', 'Stopping'), ('stopped', 'Stopped'), ('done', 'Done')], default='idle', max_length=10)),
                ('ended', models.CharField(blank=True, help_text='why it does not ask any more', max_length=500)),
                ('calls', models.PositiveIntegerField(default=0)),
                ('spent', models.BigIntegerField(default=0)),
                ('pauses', models.PositiveIntegerField(default=0, help_text='in a row, as the endpoint wished')),
                ('plan_file', models.CharField(blank=True, max_length=255)),
                ('planned', models.PositiveIntegerField(default=0)),
                ('order', models.CharField(blank=True, help_text='by what pairs are ordered', max_length=200)),
                ('agreement', models.JSONField(blank=True, default=dict)),
                ('created', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='machine_judges', to='judging.campaign')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('upload', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='machine_judges', to='judging.upload')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='MachinePrompt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('grades', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('created', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prompts', to='estimation.machinejudge')),
            ],
            options={
                'ordering': ['number'],
            },
        ),
        migrations.CreateModel(
            name='MachineAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('docno', models.CharField(max_length=255)),
                ('outcome', models.CharField(choices=[('graded', 'Graded'), ('refused', 'the model or its endpoint refused'), ('unparsable', 'no grade in the reply'), ('off_scale', 'a grade off the scale'), ('too_long', 'too long for the model'), ('down', 'no answer from the endpoint')], max_length=10)),
                ('grade', models.PositiveSmallIntegerField(null=True)),
                ('reply', models.CharField(blank=True, max_length=500)),
                ('model', models.CharField(blank=True, help_text='as the endpoint names it', max_length=200)),
                ('tokens_in', models.PositiveIntegerField(null=True)),
                ('tokens_out', models.PositiveIntegerField(null=True)),
                ('cost', models.BigIntegerField(default=0)),
                ('tries', models.PositiveSmallIntegerField()),
                ('seconds', models.FloatField()),
                ('created', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('topic', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='judging.topic')),
                ('prompt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='estimation.machineprompt')),
            ],
        ),
        migrations.AddConstraint(
            model_name='machinejudge',
            constraint=models.UniqueConstraint(fields=('campaign', 'name'), name='machine_judge_name_once'),
        ),
        migrations.AddConstraint(
            model_name='machinejudge',
            constraint=models.CheckConstraint(condition=models.Q(('calls__lte', models.F('max_calls')), ('max_calls__gte', 1)), name='machine_judge_calls_within_ceiling'),
        ),
        migrations.AddConstraint(
            model_name='machineprompt',
            constraint=models.UniqueConstraint(fields=('judge', 'number'), name='machine_prompt_number_once'),
        ),
        migrations.AddConstraint(
            model_name='machineanswer',
            constraint=models.UniqueConstraint(fields=('prompt', 'topic', 'docno'), name='machine_answer_once'),
        ),
        migrations.AddConstraint(
            model_name='machineanswer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('grade__isnull', False), ('grade__lte', 20), ('outcome', 'graded')), models.Q(models.Q(('outcome', 'graded'), _negated=True), ('grade__isnull', True)), _connector='OR'), name='machine_answer_graded_has_grade'),
        ),
        migrations.RunPython(migrations.RunPython.noop, refuse_to_lose_answers),
    ]
