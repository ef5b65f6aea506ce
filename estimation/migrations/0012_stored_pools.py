"""The row of a pool has a name of its own: what it stores is a pool."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("estimation", "0011_names_from_tables")]

    operations = [migrations.RenameModel("Pool", "StoredPool")]
