"""Records of files that an overwriting task leaves in quarantine once more: each place of a file waits there once.

A task that is run again overwrites the rows that it had written before, and so does what it leaves: an older record of
the same place goes. One that a replay holds stays in the newer one's stead: the replay's rows come after this publish.
Locks are taken in the order of a publish: the fence's row; the datasource's, so that one overwriting publish of it
at a time does this, and no replay takes records meanwhile; the records'; then the intervals' rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import SourceEvent
from ingestion.specs.messages.batch_protocol import FileRecord

State = QuarantinedRecord.State


def supersede(task_id: str, datasource: Datasource, new_records: Sequence[FileRecord]) -> list[FileRecord]:
    """Purge the older records of the same places that wait; returns what is left to be kept. In the publish's
    transaction, before it overwrites.
    """
    if not new_records:
        return []
    Datasource.objects.select_for_update(no_key=True).get(pk=datasource.pk)
    by_place = {(record.place, record.position): record for record in new_records}
    pairs = [
        (old, by_place[key]) for old in _older(datasource, new_records) if (key := (old.place, old.offset)) in by_place
    ]
    # A whole record is worth more than a newer one's beginning.
    superseded = [old.pk for old, new in pairs if old.state == State.KEPT and (old.cut or not new.cut)]
    _purge(task_id, datasource, superseded)
    in_replay = {
        (old.place, old.offset) for old, new in pairs if old.state == State.REPLAYING and _has_same_content(old, new)
    }
    return [record for record in new_records if (record.place, record.position) not in in_replay]


def _older(datasource: Datasource, new_records: Sequence[FileRecord]) -> list[QuarantinedRecord]:
    """Their rows, and some of other files: locked until the transaction ends, so that no replay publishes them."""
    records = QuarantinedRecord.objects.select_for_update(of=["self"]).filter(
        datasource=datasource, source=None, partition=0, offset__in=[record.position for record in new_records]
    )
    return list(records.filter(state__in=[State.KEPT, State.REPLAYING]).order_by("pk"))


def _has_same_content(old: QuarantinedRecord, new: FileRecord) -> bool:
    """Not when the file was changed since."""
    return bytes(old.payload or b"") == new.payload and bytes(old.file_header) == new.header


def _purge(task_id: str, datasource: Datasource, numbers: Sequence[int]) -> None:
    purged, _ = QuarantinedRecord.objects.filter(pk__in=numbers).delete()
    if purged:
        SourceEvent.objects.create(
            datasource=datasource,
            kind=SourceEvent.Kind.PURGED,
            task_id=task_id,
            detail=f"{purged} quarantined records of files were purged. The task read the same places again, "
            "overwrote the stored rows of the files, and quarantined the records again.",
        )
