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
from controlplane.segments.models import Column, columns_json, fingerprint
from ingestion.specs.messages import protocol
from ingestion.specs.messages.column_ids import ColumnId, ColumnsAnswer, ColumnsRequest, assign_ids
from ingestion.specs.time_column import TIME_ID

_BATCH_SIZE = 5_000  # in one statement
_ColumnsByPrint = Mapping[str, protocol.Column]  # by fingerprint


def assign_column_ids(datasource: int, request: ColumnsRequest) -> ColumnsAnswer:
    """The columns' ids, in the order of the request; those that are new get theirs now. Raises ``InvalidInput``."""
    if request.excess:
        raise InvalidInput(request.excess)
    prints = [fingerprint(columns_json([column])) for column in request.columns]
    by_print = dict(zip(prints, request.columns, strict=True))
    ids = _existing_ids(datasource, by_print)
    if len(ids) < len(by_print):
        ids = _assign_missing(datasource, by_print)
    return ColumnsAnswer(ids=[ids[key] for key in prints])


def columns_of(datasource: Datasource) -> QuerySet[Column]:
    """All that its files have had, by id. The caller has made sure that the user may see the datasource."""
    return Column.objects.filter(datasource=datasource).order_by("number")


def case_conflicts(datasource: Datasource) -> list[list[str]]:
    """Names that its files have had and that differ only by case, in ASCII: DuckDB takes these for one column."""
    by_lowercase: dict[bytes, list[str]] = {}
    for name in columns_of(datasource).order_by("name").values_list("name", flat=True).distinct():
        by_lowercase.setdefault(name.encode().lower(), []).append(name)
    return [names for names in by_lowercase.values() if len(names) > 1]


def _existing_ids(datasource: int, prints: Iterable[str]) -> dict[str, ColumnId]:
    columns = Column.objects.filter(datasource=datasource, fingerprint__in=list(prints))
    rows = columns.values_list("fingerprint", "number", "element")
    return {name: ColumnId(id=number, element=element) for name, number, element in rows}


@transaction.atomic
def _assign_missing(datasource: int, by_print: _ColumnsByPrint) -> dict[str, ColumnId]:
    """One at a time for a datasource: whoever waits finds afterwards what the other has handed out."""
    # No publish waits for this lock: it takes none on the row that stands against it.
    Datasource.objects.select_for_update(no_key=True).get(pk=datasource)
    ids = _existing_ids(datasource, by_print)
    new = {name: column for name, column in by_print.items() if name not in ids}
    new_ids = dict(zip(new, assign_ids(new.values(), _highest_id(datasource)), strict=True))
    rows = (
        Column(
            datasource_id=datasource,
            name=column.name,
            type=column.type,
            fingerprint=name,
            number=new_ids[name].id,
            element=new_ids[name].element,
        )
        for name, column in new.items()
    )
    Column.objects.bulk_create(rows, batch_size=_BATCH_SIZE)
    return {**ids, **new_ids}


def _highest_id(datasource: int) -> int:
    """The highest id that was handed out."""
    row = Column.objects.filter(datasource=datasource).aggregate(highest=Max(Coalesce("element", "number")))
    return row["highest"] or TIME_ID
