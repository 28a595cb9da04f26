"""Tables of lists: every head that can be clicked sorts, up and down, and pages go on where they ended."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from django.utils import timezone

from controlplane.alerts.models import Receiver, Rule
from controlplane.segments.models import QuarantinedRecord
from controlplane.teams.models import AuditEntry, Membership, Role, User
from tests.support.django_cast import Cast, browsing_as
from tests.support.every_page import all_pages

HEAD = re.compile(r'<th scope="col" data-col="(?P<column>[^"]+)"[^>]*>(?:<a href="(?P<link>[^"]+)")?')
SORTED = re.compile(r'<th scope="col" data-col="([^"]+)"[^>]* aria-sort="(\w+)"[^>]*><a ')
LISTS = {
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
    "tasks/",
    "teams/",
    "teams/<str:name>/",
}


def _links(text: str) -> list[str]:
    return [html.unescape(found["link"]) for found in HEAD.finditer(text) if found["link"]]


def _column(text: str, name: str) -> list[str]:
    """What the cells of a column hold, without markup."""
    cells = re.findall(rf'<t[dh](?: scope="row")? data-col="{name}"[^>]*>(.*?)</t[dh]>', text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


def test_every_head_that_can_be_clicked_sorts_up_and_down(cast: Cast) -> None:
    Rule.objects.create(team=cast.alpha, name="late", kind="unhealthy")
    Receiver.objects.create(team=cast.alpha, name="mail", kind="email", addresses=["a@example.org"])
    client = browsing_as(cast, "superuser")
    pages = {route: page for route, page in all_pages(cast, client).items() if 'data-table="' in page[1]}
    assert LISTS - set(pages) == set()
    for address, text in pages.values():
        for link in _links(text):
            name = link.split("sort=")[1].split("&")[0].removeprefix("-")
            for sort, now in ((name, "ascending"), (f"-{name}", "descending")):
                answer = client.get(address, {"sort": sort})
                assert answer.status_code == 200, (address, sort)
                assert SORTED.findall(answer.content.decode()) == [(name, now)], (address, sort)


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
