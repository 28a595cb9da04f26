"""Ids of columns, handed out once: to whoever writes the first file with a column, and the same to all after it.

Publishes know nothing of this: a column has its id before its file is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Coalesce

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Column, fingerprint, plain
from ingestion.specs.messages import protocol
from ingestion.specs.messages.column_ids import TIME_ID, ColumnId, ColumnsAnswer, ColumnsRequest, handed_out

_ROWS = 5_000  # in one statement
_Wanted = Mapping[str, protocol.Column]  # by fingerprint


def ids_of(datasource: int, request: ColumnsRequest) -> ColumnsAnswer:
    """The columns' ids, in the order of the request; those that are new get theirs now. Raises ``InvalidInput``."""
    if request.excess:
        raise InvalidInput(request.excess)
    prints = [fingerprint(plain([column])) for column in request.columns]
    wanted = dict(zip(prints, request.columns, strict=True))
    ids = _known(datasource, wanted)
    if len(ids) < len(wanted):
        ids = _completed(datasource, wanted)
    return ColumnsAnswer(ids=[ids[one] for one in prints])


def columns_of(datasource: Datasource) -> QuerySet[Column]:
    """All that its files have had, by id. The caller has made sure that the user may see the datasource."""
    return Column.objects.filter(datasource=datasource).order_by("number")


def alike(datasource: Datasource) -> list[list[str]]:
    """Names that its files have had and that differ only by case, in ASCII: DuckDB takes these for one column."""
    found: dict[bytes, list[str]] = {}
    for name in columns_of(datasource).order_by("name").values_list("name", flat=True).distinct():
        found.setdefault(name.encode().lower(), []).append(name)
    return [names for names in found.values() if len(names) > 1]


def _known(datasource: int, wanted: Iterable[str]) -> dict[str, ColumnId]:
    found = Column.objects.filter(datasource=datasource, fingerprint__in=list(wanted))
    rows = found.values_list("fingerprint", "number", "element")
    return {name: ColumnId(id=number, element=element) for name, number, element in rows}


@transaction.atomic
def _completed(datasource: int, wanted: _Wanted) -> dict[str, ColumnId]:
    """One at a time for a datasource: whoever waits finds afterwards what the other has handed out."""
    # No publish waits for this lock: it takes none on the row that stands against it.
    Datasource.objects.select_for_update(no_key=True).get(pk=datasource)
    ids = _known(datasource, wanted)
    new = {name: column for name, column in wanted.items() if name not in ids}
    given = dict(zip(new, handed_out(new.values(), _highest(datasource)), strict=True))
    rows = (
        Column(
            datasource_id=datasource,
            name=column.name,
            type=column.type,
            fingerprint=name,
            number=given[name].id,
            element=given[name].element,
        )
        for name, column in new.items()
    )
    Column.objects.bulk_create(rows, batch_size=_ROWS)
    return {**ids, **given}


def _highest(datasource: int) -> int:
    """The highest id that was handed out."""
    found = Column.objects.filter(datasource=datasource).aggregate(highest=Max(Coalesce("element", "number")))
    return found["highest"] or TIME_ID
