"""The registry of columns on a real PostgreSQL: who is told its ids, and what becomes of them when it goes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.retention.datasource_deletion import delete_datasource
from controlplane.segments.columns import assign_column_ids, case_conflicts
from controlplane.segments.models import Column
from controlplane.supervisors import services
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from controlplane.transfers.services import transfer_datasource
from ingestion.client.errors import Unacceptable
from ingestion.specs.messages import protocol
from ingestion.specs.messages.column_ids import ColumnId, ColumnsRequest
from tests.integration.test_supervisor_services import submit
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.in_process import client_of
from tests.support.publishes import make_source, request, send, start, too_many_columns

ADDRESS = "/api/v1/datasources/flights/columns/"
ASKED = ColumnsRequest(
    columns=[
        protocol.Column(name="__time", type="timestamp"),
        protocol.Column(name="carrier", type="string"),
        protocol.Column(name="tags", type="strings"),
        protocol.Column(name="carrier", type="long"),
    ]
)
IDS = [ColumnId(id=1), ColumnId(id=2), ColumnId(id=3, element=4), ColumnId(id=5)]


def listed(client: Client, **query: Any) -> list[tuple[int, int | None, str, str]]:
    answer = client.get(ADDRESS, query).json()
    return [(c["id"], c["element_id"], c["name"], c["type"]) for c in answer["results"]]


def test_who_may_see_the_datasource_is_told_them(cast: Cast, clients: dict[str, Client]) -> None:
    assert listed(clients["viewer"]) == []
    assert client_of(cast.task).columns(ASKED).ids == IDS
    assert listed(clients["viewer"]) == [
        (1, None, "__time", "timestamp"),
        (2, None, "carrier", "string"),
        (3, 4, "tags", "strings"),
        (5, None, "carrier", "long"),
    ]
    first = clients["viewer"].get(ADDRESS, {"limit": 3}).json()
    assert [c["id"] for c in clients["viewer"].get(first["next"]).json()["results"]] == [5]


def test_datasources_have_each_their_own(cast: Cast) -> None:
    other = Datasource.objects.create(name="other", team=cast.alpha)
    assert assign_column_ids(cast.datasource.pk, ASKED).ids == IDS
    late = ColumnsRequest(columns=ASKED.columns[:1:-1])
    assert assign_column_ids(other.pk, late).ids == [ColumnId(id=2), ColumnId(id=3, element=4)]


@pytest.mark.parametrize("part", ["rows", "columns"])
def test_pages_warn_of_columns_that_differ_only_by_case(cast: Cast, part: str) -> None:
    viewer, page = browsing_as(cast, "viewer"), reverse(f"frontend:datasource-{part}", args=["flights"])
    names = ["ID", "tags", "Ä", "ä", "Carrier"]  # of letters like Ä DuckDB knows the cases apart
    assign_column_ids(cast.datasource.pk, ASKED)
    more = [protocol.Column(name=name, type="long") for name in names]
    before = viewer.get(page)
    assert (before.status_code, b"data-alike" in before.content) == (200, False)
    assign_column_ids(cast.datasource.pk, ColumnsRequest(columns=more))
    assert case_conflicts(cast.datasource) == [["Carrier", "carrier"]]
    found = viewer.get(page).content.decode()
    assert "<code>Carrier</code> and <code>carrier</code>. Spark refuses them" in found


def test_a_name_that_can_not_be_kept_changes_nothing(cast: Cast) -> None:
    bad = ColumnsRequest(columns=[*ASKED.columns, protocol.Column(name="a\0b", type="long")])
    with pytest.raises(Unacceptable, match="cannot be stored"):
        client_of(cast.task).columns(bad)
    assert not Column.objects.exists()


def test_more_columns_at_once_than_a_publish_may_have_are_refused(cast: Cast) -> None:
    with pytest.raises(InvalidInput, match="500,001 columns, and one message may have 500,000"):
        assign_column_ids(cast.datasource.pk, too_many_columns())
    assert not Column.objects.exists()


def test_a_publish_needs_nothing_of_it(db: None) -> None:
    source = make_source("flights")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE segments_column RENAME TO segments_column_away")
    send(request(start(source), {0: [(0, 5)]}))


def test_a_datasource_that_is_made_anew_goes_on_with_them(cast: Cast, clients: dict[str, Client]) -> None:
    """Readers that remember what they have read meet no id that means something else now."""
    assign_column_ids(cast.datasource.pk, ASKED)
    services.terminate(user=cast.users["owner"], supervisor=cast.supervisor)
    Task.objects.update(status=Status.SUCCESS)
    delete_datasource(user=cast.users["owner"], datasource=cast.datasource, name="flights")
    before = listed(clients["viewer"])
    submit(cast, spec_for("flights"))
    anew = Datasource.objects.get(name="flights")
    new = protocol.Column(name="new", type="long")
    assert assign_column_ids(anew.pk, ColumnsRequest(columns=[new, *ASKED.columns])).ids == [ColumnId(id=6), *IDS]
    assert listed(clients["viewer"])[:-1] == before


def test_a_datasource_takes_them_along_to_another_team(cast: Cast, clients: dict[str, Client]) -> None:
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.ADMIN)
    assign_column_ids(cast.datasource.pk, ASKED)
    before = listed(clients["viewer"])
    transfer_datasource(user=cast.users["owner"], datasource=cast.datasource, team_name="beta")
    assert clients["viewer"].get(ADDRESS).status_code == 404
    assert listed(clients["outsider"]) == before
    assert client_of(cast.task).columns(ASKED).ids == IDS
