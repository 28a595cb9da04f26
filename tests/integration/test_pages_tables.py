"""Tables of lists: every head that can be clicked sorts, up and down, and pages go on where they ended."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from django.utils import timezone

from controlplane.alerts.models import Receiver, Rule
from controlplane.compaction.models import Job
from controlplane.loading import services as loading
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import SourceEvent
from controlplane.teams.models import ApiToken, AuditEntry, Membership, User
from controlplane.teams.roles import Role, Scope
from controlplane.teams.services import new_token
from tests.support.django_cast import Cast, browsing_as
from tests.support.every_page import all_pages

HEAD = re.compile(r'<th scope="col" data-col="(?P<column>[^"]+)"[^>]*>(?:<a href="(?P<link>[^"]+)")?')
SORTED = re.compile(r'<th scope="col" data-col="([^"]+)"[^>]* aria-sort="(\w+)"[^>]*><a ')
LISTS = {
    "account/",
    "load/",
    "datasources/<str:name>/columns/",
    "datasources/<str:name>/compaction/",
    "datasources/<str:name>/events/",
    "datasources/<str:name>/progress/",
    "tasks/<str:task_id>/errors/",
    "teams/<str:name>/service-accounts/",
    "teams/<str:name>/service-accounts/<str:account>/",
    "teams/<str:name>/tokens/",
    "alerts/rules/",
    "alerts/receivers/",
    "audit/",
    "connections/",
    "datasources/",
    "datasources/<str:name>/intervals/",
    "datasources/<str:name>/quarantine/",
    "datasources/<str:name>/segments/",
    "people/",
    "quarantine/",
    "supervisors/",
    "supervisors/<str:supervisor_id>/lag/",
    "tasks/",
    "teams/",
    "teams/<str:name>/",
}


def _tables(text: str) -> dict[str, str]:
    """The tables of a page, by their names."""
    return {part.split('"')[0]: part for part in text.split(' data-table="')[1:]}


def _sorts(table: str) -> list[tuple[str, str]]:
    """What its heads lead to: by which name the address has it, and the column."""
    links = [html.unescape(found["link"]) for found in HEAD.finditer(table) if found["link"]]
    asked = [(key, value) for link in links for key, value in parse_qsl(urlsplit(link).query)]
    return [(key, value.removeprefix("-")) for key, value in asked if key.endswith("sort")]


def _column(text: str, name: str) -> list[str]:
    """What the cells of a column hold, without markup and without the link to a query beside it."""
    cells = re.findall(rf'<t[dh](?: scope="row")? data-col="{name}"[^>]*>(.*?)</t[dh]>', text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()).split(" Query this ")[0] for cell in cells]


def test_every_head_that_can_be_clicked_sorts_up_and_down(cast: Cast) -> None:
    Rule.objects.create(team=cast.alpha, name="late", kind="unhealthy")
    Receiver.objects.create(team=cast.alpha, name="mail", kind="email", addresses=["a@example.org"])
    _make_tokens_and_a_draft(cast)
    _merge(cast, 1)
    client = browsing_as(cast, "superuser")
    pages = {route: page for route, page in all_pages(cast, client).items() if 'data-table="' in page[1]}
    assert LISTS - set(pages) == set()
    for address, text in pages.values():
        for table, part in _tables(text).items():
            for key, name in _sorts(part):
                for sort, now in ((name, "ascending"), (f"-{name}", "descending")):
                    answer = client.get(address, {key: sort})
                    assert answer.status_code == 200, (address, sort)
                    assert SORTED.findall(_tables(answer.content.decode())[table]) == [(name, now)], (address, sort)


def test_the_tables_of_a_page_are_sorted_each_by_itself(cast: Cast) -> None:
    cast.source.bounds = {"0": [0, 0, 5], "1": [0, 0, 9]}
    cast.source.save()
    _make_tokens_and_a_draft(cast)
    client = browsing_as(cast, "superuser")
    text = client.get("/account/", {"sort": "token", "sessions_sort": "where"}).content.decode()
    sorted_by = {name: SORTED.findall(part) for name, part in _tables(text).items()}
    assert sorted_by == {"sessions": [("where", "ascending")], "tokens": [("token", "ascending")]}
    assert "?sort=token&amp;sessions_sort=-where" in text, "a head of one keeps how the other is sorted"
    assert client.get("/account/", {"sessions_sort": "nothing"}).status_code == 400


def test_columns_are_found_by_a_part_of_their_name_and_sorted(cast: Cast) -> None:
    client = browsing_as(cast, "viewer")
    address, names = "/datasources/flights/columns/", []
    for sort in ("name", "-name"):
        names.append(_column(client.get(address, {"sort": sort}).content.decode(), "name"))
    assert names == [["__time", "carrier"], ["carrier", "__time"]]
    assert _column(client.get(address, {"search": "ARR"}).content.decode(), "name") == ["carrier"]
    assert "No columns match these filters." in client.get(address, {"search": "nothing like it"}).content.decode()


def test_segments_not_in_use_are_read_from_either_end(cast: Cast) -> None:
    start = timezone.now() - timedelta(days=1)
    for n, segment in enumerate(cast.datasource.segments.order_by("pk")):
        segment.used, segment.unused_at, segment.rows = False, start + timedelta(minutes=n), n + 1
        segment.save()
    count = cast.datasource.segments.count()
    assert count > 1
    rows = [str(n) for n in range(1, count + 1)]
    for query, found in (({}, rows), ({"sort": "-since"}, rows[::-1])):
        text = browsing_as(cast, "viewer").get("/datasources/flights/retention/", query).content.decode()
        assert _column(_tables(text)["unused-segments"], "rows") == found
        assert "Mark used" not in text


def _merge(cast: Cast, n: int, state: str = "done") -> None:
    start = datetime(2031, 1, 1, tzinfo=UTC)
    Job.objects.create(
        id=f"merge-{n:02}", datasource=cast.datasource, interval_start=start, interval_end=start + timedelta(hours=1),
        tier=n, state=state, inputs=[], data_schema={}, rollup=False, max_rows_per_segment=1, rows_before=n,
        bytes_before=1, created_at=start + timedelta(seconds=n),
    )  # fmt: skip


def test_merges_are_filtered_by_their_state_and_read_from_either_end(cast: Cast) -> None:
    for n in range(60):
        _merge(cast, n, state="done" if n % 2 else "failed")
    client, address = browsing_as(cast, "viewer"), "/datasources/flights/compaction/"
    for query, found in (
        ({"sort": "planned"}, [str(n) for n in range(50)]),
        ({"sort": "-planned", "state": "done"}, [str(n) for n in range(59, 0, -2)]),
    ):
        text = client.get(address, query).content.decode()
        assert _column(_tables(text)["merges"], "rows") == found
    nothing = client.get(address, {"state": "refused"}).content.decode()
    assert "No merges match these filters." in nothing and ">Clear</a>" in nothing


def _make_tokens_and_a_draft(cast: Cast) -> None:
    month, admin = timedelta(days=30), cast.users["superuser"]
    for who in ("superuser", "viewer", "service"):
        new_token(cast.users[who], name="ci", lifetime=month, scope=Scope.READ, datasources=[])
    loading.begin_draft(user=admin, team_name="alpha")


def test_tokens_of_members_are_sorted_across_pages_and_those_never_used_come_last(cast: Cast) -> None:
    now = timezone.now()
    for n in range(60):
        token, _ = new_token(
            cast.users["viewer"], name="", lifetime=timedelta(days=30), scope=Scope.READ, datasources=[]
        )
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now - timedelta(hours=n) if n < 55 else None)
    client, seen = browsing_as(cast, "owner"), []
    for number in (1, 2):
        seen += _column(
            client.get("/teams/alpha/tokens/", {"sort": "-used", "page": str(number)}).content.decode(), "used"
        )
    assert len(seen) == 60 and seen[55:] == ["–"] * 5
    assert seen[:55] == sorted(seen[:55], reverse=True)


def test_drafts_are_sorted_by_their_step_as_the_wizard_has_them(cast: Cast) -> None:
    user = cast.users["operator"]
    for step in ("review", "connection", "time", "topic"):
        draft = loading.begin_draft(user=user, team_name="alpha")
        loading.change_draft(user=user, draft=draft, document=draft.document, step=step)
    text = browsing_as(cast, "operator").get("/load/", {"sort": "step"}).content.decode()
    assert _column(text, "step") == ["Connection", "Topic", "Time", "Review"]


def test_events_are_filtered_and_read_from_either_end(cast: Cast) -> None:
    SourceEvent.objects.all().delete()
    kinds = SourceEvent.Kind
    for n in range(60):
        SourceEvent.objects.create(
            datasource=cast.datasource, kind=kinds.GAP if n % 2 else kinds.REPAIRED, alarm=n % 2 == 1, detail=f"e{n:02}"
        )
    client = browsing_as(cast, "viewer")
    for query, found in (
        ({"sort": "when"}, [f"e{n:02}" for n in range(50)]),
        ({"sort": "-when", "alarm": "true"}, [f"e{n:02}" for n in range(59, 0, -2)]),
        ({"kind": "repaired", "alarm": "false"}, [f"e{n:02}" for n in range(58, -1, -2)]),
    ):
        assert _column(client.get("/datasources/flights/events/", query).content.decode(), "detail") == found
    nothing = client.get("/datasources/flights/events/", {"kind": "repaired", "alarm": "true"}).content.decode()
    assert "No events match these filters." in nothing and ">Clear</a>" in nothing
    assert client.get("/datasources/flights/events/", {"sort": "topic"}).status_code == 400


def test_partitions_are_sorted_across_pages(cast: Cast) -> None:
    cast.source.bounds = {str(n): [0, 0, (n * 37) % 151] for n in range(151)}
    cast.source.save()
    client, seen = browsing_as(cast, "viewer"), []
    for number in (1, 2):
        query = {"sort": "-end", "page": str(number)}
        seen += _column(client.get("/datasources/flights/progress/", query).content.decode(), "end")
    assert seen == [str(n) for n in range(150, -1, -1)]


def test_a_team_of_more_than_a_page_is_shown_whole_as_it_is_sorted(cast: Cast) -> None:
    users = User.objects.bulk_create(User(username=f"member-{n:03}") for n in range(120))
    Membership.objects.bulk_create(Membership(team=cast.alpha, user=user, role=Role.VIEWER) for user in users)
    names = sorted(cast.alpha.memberships.values_list("user__username", flat=True), reverse=True)
    client, seen = browsing_as(cast, "owner"), []
    for number in (1, 2, 3):
        text = client.get("/teams/alpha/", {"sort": "-name", "page": str(number)}).content.decode()
        seen += [cell.split()[0] for cell in _column(text, "name")]
    assert seen == names


def test_people_who_never_logged_in_have_their_place_on_every_page(cast: Cast) -> None:
    now = timezone.now()
    User.objects.bulk_create(
        User(username=f"p-{n:03}", last_login=now + timedelta(seconds=n) if n % 2 else None) for n in range(120)
    )
    client, seen, link = browsing_as(cast, "superuser"), [], "?sort=-login&search=p-"
    while link:
        text = client.get(f"/people/{link}").content.decode()
        seen += _column(text, "name")
        following = re.search(r'rel="next" href="([^"]+)"', text)
        link = html.unescape(following[1]) if following else ""
    logged_in = [f"p-{n:03}" for n in range(119, 0, -2)]
    assert seen == logged_in + [f"p-{n:03}" for n in range(0, 120, 2)]


def test_causes_are_sorted_by_their_counts_and_datasources_across_pages(cast: Cast) -> None:
    cast.quarantined.delete()
    for n in range(1, 62):
        for offset in range(2 if n == 7 else 1):
            _quarantine(cast, 1000 * n + offset, f"{n:016x}")
    client = browsing_as(cast, "viewer")
    first = client.get("/quarantine/", {"sort": "-waiting"}).content.decode()
    assert re.findall(r'data-cause="(\w+)"', first)[0] == f"{7:016x}"
    seen, link = [], "?sort=datasource"
    while link:
        text = client.get(f"/quarantine/{link}").content.decode()
        seen += re.findall(r'data-cause="(\w+)"', text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        link = html.unescape(following[1]) if following else ""
    assert seen == [f"{n:016x}" for n in range(1, 62)]


def _quarantine(cast: Cast, offset: int, cause: str) -> None:
    QuarantinedRecord.objects.create(
        source=cast.source, datasource=cast.datasource, task_id=cast.task.pk, partition=1, offset=offset,
        delivery_count=1, reason="unparseable", error=cause, payload=b"{", created_at=timezone.now(), cause=cause,
        publish_id="3f2b8c1a-0000-4000-8000-123456789abc",
    )  # fmt: skip


def test_the_audit_trail_is_read_from_either_end(cast: Cast) -> None:
    AuditEntry.objects.all().delete()
    for n in range(60):
        AuditEntry.objects.create(team=cast.alpha, username="ann", target="task", target_id=f"t{n:02}", action="create")
    client = browsing_as(cast, "owner")
    text = client.get("/audit/", {"sort": "when"}).content.decode()
    assert [cell.split()[-1] for cell in _column(text, "to")] == [f"t{n:02}" for n in range(50)]
    assert client.get("/audit/", {"sort": "who"}).status_code == 400
