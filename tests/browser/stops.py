"""Every page of the site, in every state that has forms of its own: where the browser goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from frontend.load.steps import STEPS
from tests.browser.imported import druids_list
from tests.browser.site import CLUSTER, ENDED, OWNERS_SECRET, STORED, Site, address_link, removed_segment
from tests.browser.walks_of_rewinds import a_rewind, a_wide_dry_run
from tests.support.alerting import alerting
from tests.support.file_replays import a_record_of_a_file
from tests.support.permission_table import saved_query_of
from tests.support.sql import june_here


@dataclass(frozen=True)
class Stop:
    """One page to look at, as one of the cast or as nobody. ``press``: a button of that page which leads to it.

    ``part``: of a page, so that it has no head.
    """

    address: str
    role: str = "owner"
    press: str = ""
    part: bool = False
    fill: tuple[str, str] = ("", "")  # before that, a field's label and what is written into it


def stops(site: Site) -> Iterator[Stop]:
    """Every page, partial ones too, in the states in which it has other forms."""
    yield Stop("/login/", role="")
    yield Stop("/login/again/")
    yield Stop("/login/forgotten/", role="")
    yield Stop("/login/forgotten/MQ/no-such-token/", role="")
    yield Stop("/account/")
    yield Stop(address_link(site.cast.users["owner"], "ann@example.org"))
    yield Stop("/account/app/")
    yield Stop("/account/passkey/")
    yield Stop("/")
    yield Stop("/", role="outsider")
    for address in ("datasources", "supervisors", "tasks", "quarantine", "records", "audit", "teams"):
        yield Stop(f"/{address}/")
    yield Stop("/datasources/?search=nowhere")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=100")
    yield Stop("/records/?topic=flights-topic&partition=0&offset=3")  # two answers
    yield Stop("/records/?topic=flights-topic&key=key&from=2012-12-31T00:00&to=2013-01-02T00:00")
    saved = saved_query_of(site.cast).pk
    for part in (
        "",
        f"?saved={saved}",
        "saved/",
        "saved/-/new/",
        f"saved/{saved}/",
        f"saved/{saved}/delete/",
        "history/",
    ):
        yield Stop(f"/query/{part}")
    yield Stop("/query/saved/?search=nowhere")
    yield Stop("/query/", role="outsider")
    yield Stop("/nowhere/")
    for name in ("flights", STORED):
        yield from _of_datasource(name)
        yield from _of_supervisor(name)
    yield from _of_rewinds(site)
    yield Stop("/quarantine/?datasource=nowhere")
    yield Stop("/quarantine/", role="outsider")
    yield from _of_connections()
    yield from _of_alerts(site)
    record = site.cast.quarantined.pk
    yield Stop(f"/datasources/flights/quarantine/{record}/")
    for form in ("tree", "spec"):
        yield Stop(f"/datasources/flights/quarantine/{record}/?as={form}")
    yield Stop("/datasources/flights/quarantine/?reason=unparseable")
    for button in ("Ingest…", "Produce again…", "Purge…"):
        yield Stop(f"/datasources/flights/quarantine/{record}/", press=button)
    yield Stop(f"/datasources/flights/events/{site.cast.event.pk}/acknowledge/")
    fix = f"/datasources/flights/quarantine/fix/?cause={site.cast.quarantined.cause}"
    yield Stop(fix)
    yield Stop(fix, press="Submit this spec and replay all of this cause…")
    yield from _of_files(site)
    yield from _of_retention()
    yield from _of_segments(site)
    yield from _of_task(site.task.pk)
    yield Stop(f"/tasks/{ENDED}/")
    yield from _of_drafts(site)
    yield Stop("/tasks/", role="outsider")
    yield Stop("/tasks/-/capacity/")
    yield Stop("/supervisors/", role="outsider")
    yield from _of_teams()
    yield Stop("/-/styleguide/", role="superuser")
    for kind, source in (("tasks", site.task.pk), ("supervisors", "flights")):
        yield Stop(f"/{kind}/-/new/")
        yield Stop(f"/{kind}/-/new/?example=offset_range")
        yield Stop(f"/{kind}/-/new/?from={source}")
    yield Stop("/tasks/-/new/?example=index_parallel")
    yield Stop("/supervisors/-/import/")
    yield Stop("/supervisors/-/import/", press="Preview import", fill=("Or its JSON text", druids_list()))
    yield from _of_profiles(site)


def _of_segments(site: Site) -> Iterator[Stop]:
    for named in (site.cast.segments[0].pk, removed_segment(site.cast).pk):
        name = "flights" if named == site.cast.segments[0].pk else STORED
        yield Stop(f"/datasources/{name}/segments/{named}/")
        yield Stop(f"/datasources/{name}/segments/{named}/file/")


def _of_retention() -> Iterator[Stop]:
    yield Stop("/datasources/flights/?layers=small,unused,late")
    yield Stop("/datasources/flights/intervals/?layers=unused&layers=late")
    yield Stop("/datasources/flights/compaction/?rows=1000&skip=P1D")
    yield Stop("/datasources/flights/retention/rules/")
    yield Stop(f"/datasources/{STORED}/retention/rules/")
    yield Stop(f"/datasources/{STORED}/retention/rules/", press="Preview")
    yield Stop("/datasources/flights/retention/mark/?step=mark_unused&scope=everything", press="Preview")
    for step in ("mark_used", "kill"):
        yield Stop(f"/datasources/{STORED}/retention/mark/?step={step}&scope=everything", press="Preview")
    yield Stop("/datasources/flights/delete/")
    yield Stop("/datasources/year/delete/")


def _of_teams() -> Iterator[Stop]:
    parts = (
        "",
        "limits/",
        "about/",
        "leave/confirm/",
        "members/viewer/remove/",
        "tokens/",
        "service-accounts/",
        "service-accounts/loader/",
    )
    for part in (*parts, "service-accounts/loader/delete/"):
        yield Stop(f"/teams/alpha/{part}")
    yield Stop(f"/join/{OWNERS_SECRET}/")
    yield Stop(f"/join/{OWNERS_SECRET}/", role="")
    yield Stop(f"/password/{OWNERS_SECRET}/", role="")
    for part in ("", "-/new/", "viewer/", "viewer/switch/", "guest/", "guest/switch/", "guest/second-factors/"):
        yield Stop(f"/people/{part}", role="superuser")
    for address in (
        "/teams/",
        "/teams/-/new/",
        "/teams/alpha/",
        "/teams/alpha/limits/",
        "/teams/alpha/about/",
        "/teams/vacant/",
        "/teams/vacant/limits/",
        "/teams/vacant/about/",
        "/teams/vacant/delete/confirm/",
    ):
        yield Stop(address, role="superuser")
    for button in ("", "Add a rule", "Preview"):
        yield Stop("/retention/", role="superuser", press=button)
    for address in ("/datasources/flights/transfer/", "/connections/alpha/orders-schemas/transfer/"):
        yield Stop(address, role="superuser")


def _of_alerts(site: Site) -> Iterator[Stop]:
    there = alerting(site.cast)
    for tab in ("", "rules/", "receivers/", "history/", "history/?subject=nowhere", "silences/", "silences/?ended=1"):
        yield Stop(f"/alerts/{tab}")
    for tab in ("", "rules/", "receivers/", "history/", "silences/"):
        yield Stop(f"/alerts/{tab}", role="outsider")
    yield Stop("/alerts/rules/-/new/")
    yield Stop("/alerts/rules/-/new/?kind=quarantined&datasource=flights")
    for kind in ("email", "webhook", "slack"):
        yield Stop(f"/alerts/receivers/-/new/?kind={kind}")
    for place in (f"rules/{there.rule.pk}/", f"receivers/{there.receiver.pk}/"):
        yield Stop(f"/alerts/{place}")
        yield Stop(f"/alerts/{place}delete/")
    yield Stop("/alerts/silences/-/new/?datasource=flights")


def _of_connections() -> Iterator[Stop]:
    yield Stop("/connections/")
    yield Stop("/connections/", role="outsider")
    for kind in ("kafka", "schema_registry"):
        yield Stop(f"/connections/-/new/?kind={kind}")
    for name in (CLUSTER, "orders-schemas"):
        for part in ("", "change/", "confirm/restart/", "confirm/delete/"):
            yield Stop(f"/connections/alpha/{name}/{part}")
    for part in ("topics/", "topics/orders/", "topics/orders/records/", "groups/", "groups/readers/"):
        yield Stop(f"/connections/alpha/{CLUSTER}/{part}")


def _of_files(site: Site) -> Iterator[Stop]:
    """A record of a file in quarantine: there while these pages are looked at."""
    record = a_record_of_a_file(site.cast)
    yield Stop(f"/datasources/flights/quarantine/?cause={record.cause}")
    yield Stop(f"/datasources/flights/quarantine/{record.pk}/", press="Ingest…")
    fix = f"/datasources/flights/quarantine/fix/?cause={record.cause}&task={record.task_id}"
    yield Stop(fix)
    yield Stop(fix, press="Replay all of this cause with this spec…")
    record.delete()


def _of_profiles(site: Site) -> Iterator[Stop]:
    """Of rows that are there, and still are when the lines for curl are pasted."""
    with TemporaryDirectory() as place:
        june_here(site.cast.alpha, Path(place))
    for column in ("n", "tags"):
        yield Stop(f"/datasources/june/columns/profile/?column={column}&read=1")
    yield Stop("/datasources/june/columns/profile/?column=n&from=2030-01-01&read=1")


def _of_datasource(name: str) -> Iterator[Stop]:
    for tab in (
        "",
        "rows/",
        "intervals/",
        "segments/",
        "quarantine/",
        "columns/",
        "progress/",
        "events/",
        "compaction/",
        "retention/",
    ):
        yield Stop(f"/datasources/{name}/{tab}")
    yield Stop(f"/datasources/{name}/rows/table/")
    yield Stop(f"/datasources/{name}/totals/", part=True)


def _of_supervisor(name: str) -> Iterator[Stop]:
    actions = ("resume", "scale", "reset", "terminate") if name == STORED else ("suspend", "handoff")
    tabs = (
        "",
        "lag/",
        "spec/",
        "autoscaler/",
        "backfills/",
        "rewinds/",
        *(() if name == STORED else ("share-group/",)),
    )
    for tab in (*tabs, *(f"confirm/{action}/" for action in actions)):
        yield Stop(f"/supervisors/{name}/{tab}")
    yield Stop(f"/supervisors/{name}/live/", part=True)
    if name != STORED:
        yield Stop(f"/supervisors/{name}/share-group/config/", part=True)
        yield Stop(f"/supervisors/{name}/spec/?version=1&against=2")
        yield Stop(f"/supervisors/{name}/spec/1/confirm/")


def _of_rewinds(site: Site) -> Iterator[Stop]:
    """There while these pages are looked at."""
    rewind = a_rewind(site)
    for question in ("rewind", "undo", "cancel"):
        yield Stop(f"/supervisors/{STORED}/rewinds/?{question}={rewind.pk}")
    rewind.delete()
    wide = a_wide_dry_run(site)
    yield Stop(f"/supervisors/{STORED}/rewinds/?rewind={wide.pk}")
    wide.delete()


def _of_drafts(site: Site) -> Iterator[Stop]:
    drafts = (site.draft(), site.draft("flights"))  # before the list, which offers to throw one away
    yield Stop("/load/")
    yield Stop("/load/?supervisor=flights")
    for draft in drafts:
        for step in STEPS:
            yield Stop(f"/load/{draft.pk}/{step.name}/")


def _of_task(task: str) -> Iterator[Stop]:
    for page in ("", "errors/", "errors/?kind=faulty", "confirm/stop/", "confirm/finish/"):
        yield Stop(f"/tasks/{task}/{page}")
    for part in ("live/", "log/"):
        yield Stop(f"/tasks/{task}/{part}", part=True)
