"""Each form and button of what every page has, clicked through to what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from controlplane.supervisors.models import Supervisor
from tests.browser.site import Visit


def open_the_navigation(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 900})
    visit.open("/datasources/")
    link = visit.page.get_by_role("link", name="Records", exact=True)
    expect(link).to_be_hidden()
    header = visit.page.locator("header")
    visit.button("Show the navigation", header).click()
    expect(link).to_be_visible()
    visit.button("Close the navigation", header).click()
    expect(link).to_be_hidden()
    visit.page.set_viewport_size({"width": 1400, "height": 1000})


def fold_the_navigation(visit: Visit) -> None:
    """It stays narrow on the next page, its links keep their names."""
    visit.open("/datasources/")
    html, header = visit.page.locator("html"), visit.page.locator("header")
    visit.button("Narrow navigation", header).click()
    expect(html).to_have_attribute("data-nav", "narrow")
    visit.page.get_by_role("link", name="Tasks", exact=True).click()
    visit.page.wait_for_url("**/tasks/")
    expect(html).to_have_attribute("data-nav", "narrow")
    visit.button("Narrow navigation", header).click()
    expect(html).to_have_attribute("data-nav", "wide")


def go_to_anything(visit: Visit) -> None:
    """To a thing by its name, and to an action by its verb."""
    visit.open("/datasources/")
    visit.button("Go to anything…", visit.page.locator("header")).click()
    field = visit.page.get_by_role("combobox", name="A page, datasource, supervisor or task")
    field.fill("abcdef")
    expect(visit.page.locator(".palette-hit")).to_have_count(1)
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url(f"**/tasks/{visit.site.task.pk}/")
    Supervisor.objects.filter(pk="flights").update(suspended=False, terminated_at=None)
    visit.page.keyboard.press("Control+k")
    field.fill("susp fli")
    expect(visit.page.locator(".palette-hit[aria-selected=true]")).to_contain_text("Suspend flights…")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/supervisors/flights/confirm/suspend/")
    visit.page.set_viewport_size({"width": 390, "height": 900})
    visit.button("Go to anything", visit.page.locator("header")).click()
    expect(field).to_be_focused()
    visit.page.keyboard.press("Escape")
    visit.page.set_viewport_size({"width": 1400, "height": 1000})


def read_the_keys(visit: Visit) -> None:
    visit.open("/datasources/")
    visit.button("Keys", visit.page.locator("header")).click()
    sheet = visit.page.get_by_role("dialog", name="Keys")
    expect(sheet).to_be_visible()
    visit.button("Close", sheet).click()
    expect(sheet).to_be_hidden()
    visit.page.keyboard.press("g")
    visit.page.keyboard.press("s")
    visit.page.wait_for_url("**/supervisors/")
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("g t?")  # a field takes what is written
    expect(visit.page.get_by_label("Name contains")).to_have_value("g t?")
    expect(sheet).to_be_hidden()


def unfold_the_counters(visit: Visit) -> None:
    """What is unfolded stays so when the part is refreshed."""
    visit.open(f"/tasks/{visit.site.task.pk}/")
    for label, inside in (
        ("The other outcomes, all 0", "#sum-zeros .figure"),
        ("More counters, all 0", "#detail-zeros .figure"),
        ("What these mean", "#meanings dt"),
    ):
        visit.page.get_by_text(label, exact=True).click()
        _refresh(visit)
        expect(visit.page.locator(inside).first).to_be_visible()
        visit.page.get_by_text(label, exact=True).evaluate(_CLICK_BEFORE_IT_SETTLES)
        expect(visit.page.locator(inside).first).to_be_hidden()


_CLICK_BEFORE_IT_SETTLES = """(summary) => {
    document.body.dispatchEvent(new Event("htmx:beforeSwap"));
    summary.click();
    document.body.dispatchEvent(new Event("htmx:afterSettle"));
}"""


def _refresh(visit: Visit) -> None:
    """Have the page's parts asked for again, as after a look at another tab; at the latest they ask by themselves."""
    with visit.page.expect_response("**/live/**"):
        visit.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


# What the design names, where the guide shows it.
PARTS = (".state", ".strip", "svg.spark", "[data-table]", ".empty", ".is-invalid", "dialog.confirm", ".phases")


def look_at_the_guide(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/-/styleguide/")
    for part in PARTS:
        expect(visit.page.locator(f"main {part}").first, part).to_be_attached()
    expect(visit.page.locator("[data-timeline][data-bars='26']")).to_be_visible()
    expect(visit.page.locator("[data-lag][data-points='121']")).to_be_visible()
    messages = visit.page.locator("[data-message]")
    visit.button("Close this message", messages.first).click()
    expect(messages).to_have_count(1)
    visit.press("Ask…")
    question = visit.page.get_by_role("dialog")
    expect(question).to_be_visible()
    visit.button("Cancel", question).click()
    expect(question).to_be_hidden()


def copy_as_curl(visit: Visit) -> None:
    visit.open("/tasks/?status=RUNNING")
    visit.page.locator("summary", has_text="REST").click()
    visit.press("Copy as curl")
    expect(visit.page.get_by_role("button", name="Copied")).to_be_visible()
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(f"'{visit.site.url}/api/v1/tasks/?status=RUNNING'")


def choose_columns(visit: Visit) -> None:
    """The choice holds on the next page, and in this browser alone."""
    visit.open("/tasks/")
    kind, segments = (visit.page.get_by_role("columnheader", name=name) for name in ("Kind", "Segments"))
    expect(kind).to_be_hidden()
    visit.page.locator("summary", has_text="View").click()
    visit.page.get_by_label("Kind", exact=True).last.check()
    visit.page.get_by_label("Segments", exact=True).uncheck()
    visit.page.get_by_label("Airy").check()
    visit.open("/tasks/?status=RUNNING")
    expect(kind).to_be_visible()
    expect(segments).to_be_hidden()
    expect(visit.page.locator("html")).to_have_attribute("data-density", "airy")
    visit.page.evaluate("localStorage.clear()")


def copy_an_id(visit: Visit) -> None:
    visit.open(f"/tasks/{visit.site.task.pk}/")
    visit.press("Copy the whole id")
    _until_copied(visit, visit.site.task.pk)


def _until_copied(visit: Visit, *texts: str) -> None:
    """All of these are in the clipboard, which is written a moment after the click."""
    visit.page.wait_for_function(
        "async all => navigator.clipboard.readText().then(text => all.every(one => text.includes(one)))",
        arg=list(texts),
    )


def copy_a_line(tool: str, names: str, datasource: str = "/api/v1/datasources/flights/") -> Callable[[Visit], None]:
    """What opens a datasource elsewhere."""

    def walk(visit: Visit) -> None:
        visit.open("/datasources/flights/rows/")
        visit.press(f"Copy the line for {tool}")
        _until_copied(visit, names, datasource)

    return walk


def copy_the_properties_for_trino(visit: Visit) -> None:
    visit.open("/datasources/flights/rows/")
    visit.press("Copy the properties for Trino")
    _until_copied(visit, "connector.name=iceberg", "iceberg.rest-catalog.uri=http")


def zoom_the_lag(visit: Visit) -> None:
    visit.open("/supervisors/flights/")
    chart = visit.page.locator("[data-lag][data-points='20']")
    expect(chart).to_be_visible()
    visit.press("Zoom in")
    expect(visit.page.locator("[data-lag][data-zoom='50-100']")).to_be_visible()
    visit.press("Zoom out")
    expect(visit.page.locator("[data-lag][data-zoom='0-100']")).to_be_visible()
    visit.press("Zoom in")
    visit.press("Whole")
    expect(visit.page.locator("[data-lag][data-zoom='0-100']")).to_be_visible()


def look_at_a_partition(visit: Visit) -> None:
    Supervisor.objects.filter(pk="flights").update(partitions=2)  # a resume forgets them until Kafka answers
    visit.open("/supervisors/flights/")
    status = visit.page.locator("[data-lag-status]")
    expect(status).to_contain_text("the largest 19")
    visit.page.get_by_label("Lag of").select_option("1")
    expect(status).to_contain_text("the largest 0")


def simulate(visit: Visit) -> None:
    visit.open("/supervisors/flights/autoscaler/")
    for label, value in (
        ("scaleOutThreshold, offsets", "1"),
        ("triggerScaleOutFractionThreshold", "0.1"),
        ("lagCollectionIntervalMillis", "5000"),
        ("scaleActionPeriodMillis", "5000"),
        ("scaleActionStartDelayMillis", "0"),
    ):
        visit.page.get_by_label(label, exact=True).fill(value)
    visit.press("Simulate")
    expect(visit.page.locator("[data-simulated]")).to_be_visible()
    expect(visit.page.get_by_text("The lag was at least 1 in")).not_to_have_count(0)


def roll_back(visit: Visit) -> None:
    visit.open("/supervisors/flights/spec/?version=1")
    visit.page.get_by_role("link", name="Roll back to this version…").click()
    before = visit.site.supervisor().version
    visit.press("Roll back")
    visit.told("has a new version with the content of version 1")
    supervisor = visit.site.supervisor()
    assert supervisor.version == before + 1
    assert supervisor.current.spec["spec"] == supervisor.versions.get(version=1).spec["spec"]


def search_the_log(visit: Visit) -> None:
    visit.open(f"/tasks/{visit.site.task.pk}/")
    visit.page.get_by_label("Lines with").fill("LINE of")
    visit.press("Search")
    expect(visit.page.locator("[data-log-found='400']")).to_be_visible()
    visit.page.get_by_label("Lines with").fill("nowhere")
    visit.press("Search")
    expect(visit.page.get_by_text("No line matches.")).to_be_visible()


def see_an_example(visit: Visit) -> None:
    """It stays open when the part is refreshed."""
    visit.open(f"/tasks/{visit.site.task.pk}/")
    visit.page.get_by_text("Newest record", exact=True).first.click()
    _refresh(visit)
    expect(visit.page.locator("#parse-errors article").first).to_be_visible()
