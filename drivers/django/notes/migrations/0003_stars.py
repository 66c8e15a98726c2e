from django.db import migrations, models


class Migration(migrations.Migration):
    """Is run in front of the programs that know of the column, as deployments do it."""

    dependencies = [("notes", "0002_index")]

    operations = [
        migrations.AddField("Note", "stars", models.IntegerField(db_default=1)),
    ]
