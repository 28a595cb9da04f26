"""The tables of records that are no good: those in quarantine, and those that were stored with a faulty field."""

from __future__ import annotations

from frontend.tables import Column, Shape

_MANY = "Too many records to sort by this. Filter them first"


def _records(name: str, since: str) -> Shape:
    """``since``: what became of a record when it was read."""
    return Shape(
        name,
        (
            Column("choose", "Choose", fixed=True, has_hidden_head=True),
            Column("record", "Record", fixed=True, unsortable_reason=_MANY),
            Column("error", "Error", unsortable_reason=_MANY),
            Column("payload", "Payload"),
            Column("since", since, sorts="id", descending_first=True),
            Column("written", "Written", unsortable_reason=_MANY),
            Column("delivery", "Delivery", number=True, unsortable_reason=_MANY, is_shown=False),
            Column("more", "More"),
        ),
        default="-since",
        tie_breakers=("-id",),
    )


QUARANTINED = _records("quarantined", "Quarantined")
FAULTY = _records("faulty-records", "Stored")
