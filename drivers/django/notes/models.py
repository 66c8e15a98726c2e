from django.db import models


class Note(models.Model):
    owner = models.CharField(max_length=40)
    text = models.TextField()
    more = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index("owner", name="notes_of_owner")]


class Counter(models.Model):
    value = models.IntegerField(default=0)
