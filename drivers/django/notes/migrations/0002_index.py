from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notes", "0001_notes")]

    operations = [
        AddIndexConcurrently("Note", models.Index("owner", name="notes_of_owner")),
    ]
