"""A cluster's topics as a list: searched, sorted and in pages as the address asks."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from controlplane.common.errors import InvalidInput
from controlplane.connections import browsing
from frontend.filters import TopicFilter
from frontend.tables import Column, Shape, Table

TOPICS = Shape(
    "topics",
    (
        Column("name", "Topic", sorts="name", fixed=True),
        Column("partitions", "Partitions", sorts="partitions", number=True, descending_first=True),
        Column("records", "Records", sorts="records", number=True, descending_first=True),
        Column("rate", "Records/s", number=True, unsortable_reason="Known only for topics that were read before"),
    ),
    default="name",
    tie_breakers=("name",),
)


def read_query(query: Mapping[str, str], shape: Shape = TOPICS) -> dict[str, Any]:
    """What the address asks for, whether Kafka answers or not. Raises ``InvalidInput`` for a sort that there is not."""
    filters = TopicFilter(query)
    internal, search = filters.chosen("internal") == "1", filters.chosen("search")
    return {
        "filters": filters,
        "search": search,
        "internal": internal,
        "filtered": bool(search),
        "table": shape.table_for(query),
    }


def topics_page(
    cluster: browsing.Cluster, query: Mapping[str, str], shape: Shape = TOPICS, missing_name: str = ""
) -> dict[str, Any]:
    """A page of them; by name, and with ``unsorted`` that says why, where they are too many to be sorted otherwise.

    ``missing_name``: a name that there is not; ``similar`` are those of the list that are written much like it.
    Raises ``Unavailable``.
    """
    parameters = read_query(query, shape)
    names: list[str] = []
    try:
        page = _page(cluster, query, parameters, parameters["table"], names)
        return {**parameters, "page": page, "similar": similar(missing_name, names)}
    except InvalidInput as error:
        table = shape.table_for({})
        message = f"{error.detail} Topics are sorted by name instead. Filter by name first."
        page = _page(cluster, query, parameters, table, names)
        return {
            **parameters,
            "table": table,
            "page": page,
            "unsorted": message,
            "similar": similar(missing_name, names),
        }


def similar(missing_name: str, names: list[str]) -> list[str]:
    """Those that ``missing_name`` may be a slip of the pen of, the nearest first; case does not count."""
    by_lower = {name.lower(): name for name in names}
    return [by_lower[near] for near in get_close_matches(missing_name.lower(), by_lower, n=3)] if missing_name else []


def _page(
    cluster: browsing.Cluster, query: Mapping[str, str], parameters: Mapping[str, Any], table: Table, names: list[str]
) -> Any:
    """``names``: takes the names of all topics that the search finds."""

    def arranged(rows: list[browsing.TopicRow]) -> list[browsing.TopicRow]:
        names[:] = [row.name for row in rows]
        return table.arranged(rows)

    return browsing.sorted_topics(
        cluster,
        arranged,
        number=query.get("page"),
        search=parameters["search"],
        internal=parameters["internal"],
        by_records=table.sort.removeprefix("-") == "records",
    )
