"""Receipts are found by the time of their publish: a block range index, as they lie in its order; 24 kB a day."""

from django.db import migrations

_MAKE = """
CREATE INDEX receipt_by_time ON segments_receipt USING brin (created_at) WITH (autosummarize = on, pages_per_range = 32)
"""


class Migration(migrations.Migration):
    dependencies = [("segments", "0032_acknowledged_events")]
    operations = [migrations.RunSQL(_MAKE, "DROP INDEX receipt_by_time")]
