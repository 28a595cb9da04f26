"""Each form and button of supervisors, tasks, specs and lists, clicked through to what comes of it.

A walk begins by itself, with the state that it needs, so that it does not matter which came before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import expect

from controlplane.datasources.models import Datasource
from controlplane.login.models import Session
from controlplane.publishing.models import ProgressKey
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Goal, Status, Task
from tests.browser.site import STORED, Visit
from tests.support.django_cast import PASSWORD, spec_for


def log_in(visit: Visit) -> None:
    visit.become("")
    visit.open("/login/")
    visit.page.get_by_label("Username").fill("viewer")
    visit.page.get_by_label("Password").fill(PASSWORD)
    visit.press("Log in")
    visit.page.wait_for_url(f"{visit.site.url}/")
    assert _sessions(visit, "viewer") == 1


def _sessions(visit: Visit, role: str) -> int:
    user = str(visit.site.cast.users[role].pk)
    return [session.get_decoded().get("_auth_user_id") for session in Session.objects.all()].count(user)


def log_out(visit: Visit) -> None:
    visit.open("/datasources/")
    before, menu = _sessions(visit, "owner"), visit.page.locator("header")
    visit.button("owner", menu).click()
    visit.button("Log out", menu).click()
    visit.page.wait_for_url("**/login/")
    assert _sessions(visit, "owner") == before - 1


def choose_a_theme(visit: Visit) -> None:
    visit.open("/datasources/")
    bar, html = visit.page.locator("header"), visit.page.locator("html")
    for name, theme in (("Dark", "dark"), ("Light", "light"), ("As the system", "light")):
        visit.button("Theme", bar).click()
        visit.button(name, bar).click()
        expect(html).to_have_attribute("data-bs-theme", theme)
        visit.page.keyboard.press("Escape")


def filter_the_audit_trail(visit: Visit) -> None:
    visit.open("/audit/")
    visit.page.get_by_label("Id", exact=True).fill("nothing-of-this-name")
    visit.press("Filter")
    expect(visit.page.get_by_text("No entries match these filters.")).to_be_visible()
    with visit.page.expect_download() as download:
        visit.page.get_by_role("link", name="JSON lines").click()
    assert download.value.suggested_filename == "audit-alpha.ndjson"


def find_a_record(visit: Visit) -> None:
    visit.open("/records/")
    for label, value in (("Topic", "flights-topic"), ("Partition", "0"), ("Offset", "100")):
        visit.page.get_by_label(label, exact=True).fill(value)
    visit.press("Find")
    expect(visit.page.locator("[data-fate=stored]")).to_be_visible()


def filter_tasks(visit: Visit) -> None:
    visit.open("/tasks/")
    visit.page.get_by_role("combobox", name="Status").select_option("FAILED")
    visit.press("Filter")
    expect(visit.page.locator("tbody tr")).to_have_count(Task.objects.filter(status=Status.FAILED).count())


def filter_supervisors(visit: Visit) -> None:
    visit.open("/supervisors/")
    visit.page.get_by_label("Name contains").fill(STORED)
    visit.press("Filter")
    expect(visit.page.locator("tbody tr")).to_have_count(1)


def search_datasources(visit: Visit) -> None:
    visit.open("/datasources/")
    visit.page.get_by_label("Name contains").fill("fligh")
    visit.press("Filter")
    expect(visit.page.locator("tbody th")).to_have_text(["flights"])


def _running(name: str = "flights", **changes: Any) -> None:
    fresh: dict[str, Any] = {"suspended": False, "terminated_at": None, "handoff_asked_at": None}
    Supervisor.objects.filter(pk=name).update(**{**fresh, **changes})


def _on_the_page_of(visit: Visit, name: str) -> None:
    visit.open(f"/supervisors/{name}/")


def is_suspended(visit: Visit, name: str) -> None:
    visit.told(f"{name} is suspended")
    assert visit.site.supervisor(name).suspended


def is_resumed(visit: Visit, name: str) -> None:
    visit.told(f"{name} is resumed")
    assert not visit.site.supervisor(name).suspended


def was_handed_off(visit: Visit, name: str) -> None:
    visit.told(f"{name} hands off")
    assert visit.site.supervisor(name).handoff_asked_at is not None


def is_terminated(visit: Visit, name: str) -> None:
    visit.told(f"{name} is terminated")
    assert visit.site.supervisor(name).terminated_at is not None


def is_reset(visit: Visit, name: str) -> None:
    visit.told("The stored offsets of all partitions are reset.")
    key = ProgressKey.objects.get(source__group=name)
    assert key.next_offset is None


def suspend(visit: Visit) -> None:
    _running()
    _on_the_page_of(visit, "flights")
    visit.press("Suspend…")
    visit.button("Cancel", visit.page.get_by_role("dialog")).click()
    expect(visit.page.get_by_role("dialog")).to_be_hidden()
    assert not visit.site.supervisor().suspended
    visit.answer("Suspend", "Suspend")
    is_suspended(visit, "flights")


def resume(visit: Visit) -> None:
    _running(suspended=True)
    _on_the_page_of(visit, "flights")
    visit.answer("Resume", "Resume")
    is_resumed(visit, "flights")


def hand_off(visit: Visit) -> None:
    _running()
    _on_the_page_of(visit, "flights")
    visit.answer("Hand off", "Hand off")
    was_handed_off(visit, "flights")


def scale(visit: Visit) -> None:
    _running()
    _on_the_page_of(visit, "flights")
    visit.press("Scale…")
    visit.page.get_by_role("dialog").get_by_label("Indexers (taskCount)").fill("3")
    visit.button("Scale", visit.page.get_by_role("dialog")).click()
    visit.told("now keeps 3 indexers")
    assert visit.site.supervisor().io_config.taskCount == 3


def reset(visit: Visit) -> None:
    _running(STORED, suspended=True)
    _on_the_page_of(visit, STORED)
    visit.press("Reset offsets…")
    visit.page.get_by_role("dialog").get_by_label("Or one partition").fill("0: 7")
    visit.button("Reset offsets", visit.page.get_by_role("dialog")).click()
    visit.told("The stored offsets of 1 partition are reset.")
    assert ProgressKey.objects.get(source__group=STORED).next_offset == 7


def terminate(visit: Visit) -> None:
    _running()
    _on_the_page_of(visit, "flights")
    visit.answer("Terminate", "Terminate")
    is_terminated(visit, "flights")
    _running()


_NAMES = {"resume": STORED, "reset": STORED}


def answer_on_a_page(action: str, label: str, effect: Callable[[Visit, str], None]) -> Callable[[Visit], None]:
    """The question as a page of its own, for browsers without scripts."""
    name = _NAMES.get(action, "flights")

    def walk(visit: Visit) -> None:
        _running(name, suspended=name == STORED)
        visit.open(f"/supervisors/{name}/confirm/{action}/")
        visit.press(label)
        effect(visit, name)
        _running(name, suspended=name == STORED)

    return walk


def scale_on_a_page(visit: Visit) -> None:
    _running()
    visit.open("/supervisors/flights/confirm/scale/")
    visit.page.get_by_label("Indexers (taskCount)").fill("5")
    visit.press("Scale")
    visit.told("now keeps 5 indexers")
    assert visit.site.supervisor().io_config.taskCount == 5


def think_better_of_it(visit: Visit) -> None:
    _running()
    visit.open("/supervisors/flights/confirm/terminate/")
    visit.press("Cancel")
    visit.page.wait_for_url("**/supervisors/flights/")
    assert visit.site.supervisor().terminated_at is None


def look_further_back(visit: Visit) -> None:
    _running()
    _on_the_page_of(visit, "flights")
    section = visit.page.locator("[data-lag]")
    expect(section).to_have_attribute("data-points", "20")
    with visit.page.expect_response("**/lag.json?window=7d*"):
        section.get_by_label("Time window").select_option("7d")


def show_another_window(visit: Visit) -> None:
    visit.open("/supervisors/flights/lag/")
    visit.page.get_by_label("Time window").select_option("1d")
    visit.press("Show")
    expect(visit.page.get_by_label("Time window")).to_have_value("1d")
    assert "window=1d" in visit.page.url


def copy_the_version(visit: Visit) -> None:
    visit.open("/supervisors/flights/spec/?version=1")
    visit.press("Copy")
    assert json.loads(_copied(visit))["spec"]["ioConfig"]["topic"] == "flights-topic"


def _copied(visit: Visit) -> str:
    expect(visit.page.get_by_text("Copied")).to_have_count(1)
    return str(visit.page.evaluate("navigator.clipboard.readText()"))


def copy_log_and_spec(visit: Visit) -> None:
    _run(visit)
    visit.page.get_by_role("button", name="Copy", exact=True).first.click()
    assert "a line of the log" in _copied(visit)
    _run(visit)
    visit.page.get_by_role("button", name="Copy", exact=True).last.click()
    assert json.loads(_copied(visit))["spec"]["ioConfig"]["topic"] == "flights-topic"


def _run(visit: Visit, page: str = "") -> None:
    """The task runs, and its page is open."""
    Task.objects.filter(pk=visit.site.task.pk).update(goal=Goal.RUN)
    visit.open(f"/tasks/{visit.site.task.pk}/{page}")


def finish(visit: Visit) -> None:
    _run(visit)
    visit.press("Finish…")
    visit.button("Cancel", visit.page.get_by_role("dialog")).click()
    assert visit.site.task.goal == Goal.RUN
    visit.answer("Finish", "Finish")
    visit.told("The task publishes what it holds and ends.")
    assert visit.site.task.goal == Goal.FINISH


def stop(visit: Visit) -> None:
    _run(visit)
    visit.answer("Stop now", "Stop now")
    visit.told("The task is stopping.")
    assert visit.site.task.goal == Goal.STOP


def finish_on_a_page(visit: Visit) -> None:
    _run(visit, "confirm/finish/")
    visit.press("Cancel")
    visit.page.wait_for_url(f"**/tasks/{visit.site.task.pk}/")
    _run(visit, "confirm/finish/")
    visit.press("Finish")
    visit.told("The task publishes what it holds and ends.")
    assert visit.site.task.goal == Goal.FINISH


def stop_on_a_page(visit: Visit) -> None:
    _run(visit, "confirm/stop/")
    visit.press("Stop now")
    visit.told("The task is stopping.")
    assert visit.site.task.goal == Goal.STOP


def _write(visit: Visit, kind: str, spec: dict[str, Any]) -> None:
    visit.open(f"/{kind}/-/new/")
    visit.page.locator(".cm-content").click()
    visit.page.keyboard.press("Control+a")
    visit.page.keyboard.insert_text(json.dumps(spec))


def submit_a_task(visit: Visit) -> None:
    _write(visit, "tasks", {**spec_for("by-page"), "id": "by-page"})
    visit.press("Submit task")
    visit.told("Task submitted.")
    assert Task.objects.get(pk="by-page").datasource.name == "by-page"


def submit_a_supervisor(visit: Visit) -> None:
    _write(visit, "supervisors", {**spec_for("kept-by-page"), "suspended": True})
    visit.press("Submit supervisor")
    visit.told("Supervisor submitted.")
    assert visit.site.supervisor("kept-by-page").suspended


def check_a_task(visit: Visit) -> None:
    _check(visit, "tasks")


def check_a_supervisor(visit: Visit) -> None:
    _check(visit, "supervisors")


def _check(visit: Visit, kind: str) -> None:
    _write(visit, kind, spec_for("only-checked"))
    visit.press("Check spec")
    expect(visit.page.get_by_text("Nothing was submitted.")).to_be_visible()
    assert not Datasource.objects.filter(name="only-checked").exists()


def preview(kind: str) -> Callable[[Visit], None]:
    """Of pasted records: what is shown is all that comes of it."""

    def walk(visit: Visit) -> None:
        _write(visit, kind, spec_for("only-previewed"))
        at = datetime(2025, 6, 1, tzinfo=UTC).isoformat()
        visit.page.get_by_label("Pasted records").fill(json.dumps({"__time": at, "a": 1}))
        visit.page.get_by_label("Records", exact=True).select_option("Pasted")
        visit.press("Preview")
        expect(visit.page.locator("[data-outcome=stored]")).to_have_count(1)
        assert not Datasource.objects.filter(name="only-previewed").exists()

    return walk


def apply_the_spec(visit: Visit) -> None:
    """On the broker: the caller looks there."""
    visit.open("/supervisors/flights/share-group/")
    expect(visit.page.locator("#group-config[data-drifted=yes]")).to_be_visible()
    visit.press("Apply the spec")
    visit.told("The broker's configuration now matches the spec.")


def preview_a_backfill(visit: Visit) -> None:
    """Where no Kafka answers: the page says so, and keeps what was written."""
    visit.open(f"/supervisors/{STORED}/backfills/")
    field = visit.page.get_by_role("textbox", name="One partition, its first offset and its end per line")
    field.fill("0: 1-5")
    visit.press("Preview backfill")
    expect(visit.page.get_by_role("alert")).to_contain_text("Kafka did not answer")
    expect(field).to_have_value("0: 1-5")
    assert not Supervisor.objects.filter(fills=STORED).exists()


def fill_a_gap(visit: Visit) -> None:
    """With a broker, which has these offsets."""
    visit.open(f"/supervisors/{STORED}/backfills/")
    visit.page.get_by_role("link", name="Fill partition 0 from 0 to 5").click()
    visit.page.get_by_label("Indexers of the backfill").fill("2")
    visit.press("Fill")
    visit.told("A backfill begins.")
    io_config = visit.site.supervisor(f"{STORED}:fill:1").io_config
    assert io_config.boundedStreamConfig is not None
    assert (io_config.boundedStreamConfig.ranges, io_config.taskCount) == ({0: (0, 5)}, 2)


def skip_and_fill(visit: Visit) -> None:
    """With a broker, which has more."""
    visit.open(f"/supervisors/{STORED}/backfills/")
    visit.page.get_by_role("link", name="Show what a skip to the end would leave to a backfill").click()
    visit.press("Skip and fill")
    visit.told("A backfill begins.")
    assert ProgressKey.objects.get(source__group=STORED).next_offset == 9
