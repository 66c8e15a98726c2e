from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.CreateModel(
            "Note",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("owner", models.CharField(max_length=40)),
                ("text", models.TextField()),
                ("more", models.JSONField(default=dict)),
                ("created", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            "Counter",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("value", models.IntegerField(default=0)),
            ],
        ),
    ]
