"""Each form and button of the wizard, clicked through to what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from controlplane.loading.documents import value_at
from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from tests.browser.site import Visit
from tests.support.waiting import wait_for

IO, SCHEMA = ("spec", "ioConfig"), ("spec", "dataSchema")
LABELS = {
    "connection": "Connection",
    "topic": "Topic",
    "parse": "Parse",
    "time": "Time",
    "transform": "Filter, transform",
    "schema": "Columns",
    "reading": "Reading",
    "review": "Review",
}
LOAD = "load/<uuid:draft_id>/"
STEP = f"{LOAD}<slug:step_name>/"
SEND = f"POST {STEP}"
# The review's form has each step before it.
PARTS = [c for name in list(LABELS.values())[:-1] for c in (("", f"Change it in {name}"), (SEND, f"Apply to {name}"))]
NEXT = dict(zip(list(LABELS), [*list(LABELS)[1:], ""], strict=True))
BEFORE = {after: step for step, after in NEXT.items() if after}


def _open(visit: Visit, step: str, supervisor: str | None = None) -> Draft:
    draft = visit.site.draft(supervisor)
    visit.open(f"/load/{draft.pk}/{step}/")
    return draft


def _now(draft: Draft, *path: str) -> Any:
    return value_at(Draft.objects.get(pk=draft.pk).document, path)


def begin(visit: Visit) -> None:
    before = set(Draft.objects.values_list("pk", flat=True))
    visit.open("/load/")
    visit.press("Create draft")
    visit.page.wait_for_url("**/connection/")
    assert len(set(Draft.objects.values_list("pk", flat=True)) - before) == 1


def begin_a_change(visit: Visit) -> None:
    before = set(Draft.objects.values_list("pk", flat=True))
    visit.open("/supervisors/flights/")
    visit.press("Change")
    visit.page.wait_for_url("**/review/")
    assert len(set(Draft.objects.values_list("pk", flat=True)) - before) == 1


def throw_away(visit: Visit) -> None:
    draft = visit.site.draft()
    visit.open("/load/")
    visit.button("Delete draft", visit.page.locator(f"[data-draft='{draft.pk}']")).click()
    visit.told("The draft is deleted.")
    assert not Draft.objects.filter(pk=draft.pk).exists()


def step(name: str, label: str, value: str, path: tuple[str, ...], found: Any) -> Callable[[Visit], None]:
    """Change one field of a step; try it, go on, and come back."""

    def walk(visit: Visit) -> None:
        draft = _open(visit, name)
        field = visit.page.get_by_label(label, exact=True)
        if field.evaluate("e => e.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
        if name not in ("connection", "topic"):
            visit.press("Try")
            wait_for("the draft", lambda: _now(draft, *path) == found, 30)
        visit.press(LABELS[NEXT[name]])
        visit.page.wait_for_url(f"**/{NEXT[name]}/")
        assert _now(draft, *path) == found
        if name in BEFORE:
            visit.open(f"/load/{draft.pk}/{name}/")
            visit.press("Back")
            visit.page.wait_for_url(f"**/{BEFORE[name]}/")
            assert _now(draft, *path) == found

    return walk


def read_records(visit: Visit) -> None:
    """Nobody answers at the site's broker, and the page says so."""
    _open(visit, "topic")
    visit.press("Read records")
    expect(visit.page.locator("#preview-problem")).to_contain_text("There is no sample.", timeout=30_000)


def use_a_format(visit: Visit) -> None:
    draft = _open(visit, "parse")
    visit.press("Use json")
    visit.page.wait_for_load_state()
    assert _now(draft, *IO, "inputFormat") == {"type": "json"}


def use_a_time(visit: Visit) -> None:
    draft = _open(visit, "time")
    visit.press("Use __time")
    visit.page.wait_for_load_state()
    assert _now(draft, *SCHEMA, "timestampSpec", "format") == "iso"
    visit.press("Use Kafka's own time")
    expect(visit.page.get_by_label("Field", exact=True)).to_have_value("kafka.timestamp")
    assert _now(draft, *IO, "inputFormat", "type") == "kafka"


def name_it(visit: Visit) -> None:
    draft = _open(visit, "review")
    visit.page.locator("main").get_by_label("Datasource").fill("renamed")
    visit.press("Use this name")
    visit.told("The draft is saved.")
    assert _now(draft, *SCHEMA, "dataSource") == "renamed"


def change_a_part(visit: Visit) -> None:
    """The form beside the JSON changes the same document."""
    draft = _open(visit, "review")
    part = visit.page.locator("[data-part=reading]")
    part.locator("summary").click()
    group = part.get_by_label("Share group (groupId)")
    part.get_by_label("Share group:").check()
    expect(group).to_be_visible()
    part.get_by_label("Stored offsets:").check()
    expect(group).to_be_hidden()
    part.get_by_label("Indexers (taskCount)").fill("4")
    visit.button("Apply to Reading", part).click()
    expect(visit.page.locator("[data-part=reading]")).to_contain_text("4 indexers")
    expect(visit.page.locator(".spec-field")).to_contain_text('"taskCount": 4')
    assert _now(draft, *IO, "taskCount") == 4


def save_the_json(visit: Visit) -> None:
    draft = _open(visit, "review")
    visit.press("Save the JSON")
    visit.told("The draft is saved.")
    visit.press("Back")
    visit.page.wait_for_url("**/reading/")
    assert Draft.objects.filter(pk=draft.pk, step="review").exists()


def submit_a_supervisor(visit: Visit) -> None:
    _open(visit, "review")
    visit.press("Submit supervisor")
    visit.told("Supervisor submitted.")
    assert Supervisor.objects.filter(pk="drafted").exists()


def run_as_a_task(visit: Visit) -> None:
    draft = visit.site.draft()
    draft.document["spec"]["dataSchema"]["dataSource"] = "drafted-once"
    draft.save()
    visit.open(f"/load/{draft.pk}/review/")
    visit.press("Run once as a task")
    visit.told("Task submitted.")
    assert Task.objects.filter(datasource__name="drafted-once").count() == 1


def submit_a_change(visit: Visit) -> None:
    before = visit.site.supervisor().version
    draft = visit.site.draft("flights")
    draft.document["spec"]["ioConfig"]["taskCount"] += 1  # an unchanged spec is no new version
    draft.save(update_fields=["document"])
    visit.open(f"/load/{draft.pk}/review/")
    visit.press("Submit the change")
    visit.told("Supervisor submitted.")
    assert visit.site.supervisor().version == before + 1


_SERVERS = "Servers (bootstrap.servers)"
connection = step(
    "connection", _SERVERS, "other:9092", (*IO, "consumerProperties"), {"bootstrap.servers": "other:9092"}
)
topic = step("topic", "Topic", "others", (*IO, "topic"), "others")
parse = step("parse", "Format", "json", (*IO, "inputFormat", "type"), "json")
time = step("time", "Segment granularity", "HOUR", (*SCHEMA, "granularitySpec", "segmentGranularity"), "HOUR")
_CONDITION = (*SCHEMA, "transformSpec", "filter", "expression")
transform = step("transform", "Keep records where", "amount > 1", _CONDITION, "amount > 1")
schema = step("schema", "Query granularity", "MINUTE", (*SCHEMA, "granularitySpec", "queryGranularity"), "MINUTE")
reading = step("reading", "Indexers (taskCount)", "3", (*IO, "taskCount"), 3)
