"""The tables of records that are no good: those in quarantine, and those that were stored with a faulty field."""

from __future__ import annotations

from frontend.tables import Column, Shape

_MANY = "Too many records to sort by this. Filter them first"


def _records(name: str, since: str) -> Shape:
    """``since``: what became of a record when it was read."""
    return Shape(
        name,
        (
            Column("choose", "Choose", fixed=True, silent=True),
            Column("record", "Record", fixed=True, why=_MANY),
            Column("error", "Error", why=_MANY),
            Column("payload", "Payload"),
            Column("since", since, sorts="id", falls=True),
            Column("written", "Written", why=_MANY),
            Column("delivery", "Delivery", number=True, why=_MANY, shown=False),
            Column("more", "More"),
        ),
        default="-since",
        last=("-id",),
    )


QUARANTINED = _records("quarantined", "Quarantined")
FAULTY = _records("faulty-records", "Stored")
