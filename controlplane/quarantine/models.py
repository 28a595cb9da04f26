"""Records that could not be read, or not whole, and how many there are for what cause."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models.functions import MD5

from controlplane.datasources.masked_querysets import ConcealingQuerySet, hidden_note
from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from ingestion.specs.causes import FINGERPRINT_LENGTH


class QuarantinedRecord(models.Model):
    """A poison record, kept whole before it was rejected."""

    class State(models.TextChoices):
        KEPT = "kept", "kept"
        REPLAYING = "replaying", "being replayed"
        STORED = "stored", "stored by a replay"
        THROWN_AWAY = "thrown_away", "thrown away by a replay"
        PRODUCED = "produced", "produced again"

    # None for a record of a file: which file, and where in it, says ``place``; the byte or row is the offset, too.
    source = models.ForeignKey(Source, on_delete=models.CASCADE, null=True, related_name="quarantined")
    place = models.TextField(default="", db_default="")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="quarantined")
    task_id = models.CharField(max_length=300)  # empty of one that was imported from a dead-letter topic
    partition = models.IntegerField()
    offset = models.BigIntegerField()
    timestamp_ms = models.BigIntegerField(null=True)
    delivery_count = models.IntegerField()
    reason = models.CharField(max_length=20)
    error = models.TextField()
    cause = models.CharField(
        max_length=FINGERPRINT_LENGTH, default="", db_default=""
    )  # fingerprint; see ``ingestion.specs.causes``
    key = models.BinaryField(null=True)
    payload = models.BinaryField(null=True)
    headers = models.BinaryField(default=b"[]")  # JSON, a list of [name, base64 or null]
    # Whether the payload is only the beginning of a file's record, or is missing since a dead letter had no copy of it;
    # of a record of a file, the line of the file that names the columns.
    cut = models.BooleanField(default=False, db_default=False)
    file_header = models.BinaryField(default=b"", db_default=b"")
    publish_id = models.UUIDField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.KEPT)
    replay_id = models.CharField(max_length=300, blank=True)  # the task that holds it, or that ended it
    replays = models.IntegerField(default=0)  # attempts that came to an end
    ended_at = models.DateTimeField(null=True)  # when it left the state kept for good
    produced_partition = models.IntegerField(null=True)
    produced_offset = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()

    objects = ConcealingQuerySet["QuarantinedRecord"].as_manager()
    concealed_for = ""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "partition", "offset"], name="a_record_is_quarantined_once")
        ]
        indexes = [
            models.Index(fields=["datasource", "-id"], name="quarantine_by_datasource"),
            models.Index(fields=["task_id", "-id"], name="quarantine_by_task"),
            models.Index(fields=["datasource", "cause", "-id"], name="quarantine_by_cause"),
            # A key may be longer than an entry of an index.
            models.Index("source", MD5("key"), name="quarantine_by_key"),
            models.Index(fields=["replay_id", "id"], name="quarantine_by_replay", condition=~models.Q(replay_id="")),
        ]

    def conceal(self, role: str) -> None:
        """All that may hold a value goes."""
        self.concealed_for, self.error, self.headers, self.file_header = role, hidden_note(role), b"[]", b""
        self.key = self.payload = self.__dict__["payload_start"] = None


class FaultyRecord(models.Model):
    """A record that was stored although a field of it was no good: as many of a task as its report shows."""

    reason = "processed_with_error"
    place = ""  # of topics alone: what files have of these, their task's row keeps

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="faulty")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="faulty")
    task_id = models.CharField(max_length=300)
    partition = models.IntegerField()
    offset = models.BigIntegerField()
    timestamp_ms = models.BigIntegerField(null=True)
    delivery_count = models.IntegerField()
    error = models.TextField()
    cause = models.CharField(max_length=FINGERPRINT_LENGTH, default="", db_default="")
    payload = models.BinaryField(null=True)  # its beginning
    payload_size = models.IntegerField(null=True)  # of the whole
    created_at = models.DateTimeField()

    objects = ConcealingQuerySet["FaultyRecord"].as_manager()
    concealed_for = ""

    class Meta:
        indexes = [
            models.Index(fields=["task_id", "-id"], name="faulty_by_task"),
            models.Index(fields=["task_id", "cause", "-id"], name="faulty_by_cause"),
        ]

    def conceal(self, role: str) -> None:
        """All that may hold a value goes."""
        self.concealed_for, self.error = role, hidden_note(role)
        self.payload = self.__dict__["payload_start"] = None


class CauseSum(models.Model):
    """How many records of a datasource are in quarantine for a cause since an hour; several rows add up.

    Triggers on the records' table add a row for each statement, so that no writer waits for another.
    ``cause_sums.fold_sums`` joins them. Hours of long ago become one, ``LONG_AGO``.
    """

    LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

    # Not checked: when a datasource is deleted, its records' trigger writes here once more.
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    cause = models.CharField(max_length=FINGERPRINT_LENGTH)
    reason = models.CharField(max_length=20)
    hour = models.DateTimeField()
    records = models.BigIntegerField()  # whatever their state
    kept = models.BigIntegerField()  # those that nothing has been done with
    # Of what was added: when they were quarantined. None where something was only taken away.
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["datasource", "cause"], name="cause_sum")]


class QuarantineCause(models.Model):
    """A cause of records in a datasource's quarantine. A view: its id is that of one of its sums, and changes."""

    datasource = models.ForeignKey(Datasource, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    cause = models.CharField(max_length=FINGERPRINT_LENGTH)
    reason = models.CharField(max_length=20)
    records = models.BigIntegerField()  # whatever their state
    kept = models.BigIntegerField()  # those that nothing has been done with
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "quarantine_quarantinecause"


class DeadLetterImport(models.Model):
    """How far the records of a dead-letter topic were imported for a source. One for each id of the topic."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="dead_letter_imports")
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=50)
    own = models.BooleanField()  # whether the source's own share group writes there
    running = models.BooleanField(default=False)
    # By partition: the offset at which the next round begins, and the offset before which the import ends.
    positions = models.JSONField(default=dict)
    ends = models.JSONField(default=dict)
    problem = models.TextField(default="", blank=True)  # why the last import ended early
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "topic_id"], name="a_topic_has_one_import")]


class DeadLetter(models.Model):
    """A record of a dead-letter topic that an import has read, while the topic holds it."""

    class Outcome(models.TextChoices):
        IMPORTED = "imported", "imported"
        STORED = "stored", "already stored"
        QUARANTINED = "quarantined", "already quarantined"
        SETTLED = "settled", "settled without a row"
        WAITING = "waiting", "not settled yet"

    dead_letter_import = models.ForeignKey(DeadLetterImport, on_delete=models.CASCADE, related_name="letters")
    partition = models.IntegerField()
    offset = models.BigIntegerField()
    # Where its record lies in the source's topic; None where no header says it.
    origin_partition = models.IntegerField(null=True)
    origin_offset = models.BigIntegerField(null=True)
    outcome = models.CharField(max_length=12, choices=Outcome.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dead_letter_import", "partition", "offset"], name="a_dead_letter_is_imported_once"
            )
        ]
