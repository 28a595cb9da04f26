"""The newest receipts of a partition are found without reading all of them."""

from django.db import migrations

_MAKE = """
CREATE INDEX receipt_by_key_and_time ON segments_receipt (key_id, created_at);
DROP INDEX receipt_by_key;
"""
_UNMAKE = """
CREATE INDEX receipt_by_key ON segments_receipt (key_id);
DROP INDEX receipt_by_key_and_time;
"""


class Migration(migrations.Migration):
    dependencies = [("segments", "0010_quarantine_replays")]
    operations = [migrations.RunSQL(_MAKE, _UNMAKE)]
