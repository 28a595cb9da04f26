"""Each form and button of connections' pages, clicked through to what comes of it."""

from __future__ import annotations

from playwright.sync_api import expect

from controlplane.connections.models import Connection
from controlplane.connections.secrets import unseal
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.teams.models import Team
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.browser.site import CLUSTER, Visit
from tests.support.django_cast import spec_for

PAGE = f"/connections/alpha/{CLUSTER}/"
SECRET = "canary-4711"


def filter_connections(visit: Visit) -> None:
    visit.open("/connections/")
    visit.page.get_by_label("Name contains").fill("schem")
    visit.press("Filter")
    expect(visit.page.locator("tbody th a")).to_have_text(["orders-schemas"])


def _fill(visit: Visit, **values: str) -> None:
    for label, value in values.items():
        visit.page.get_by_label(label.replace("_", " "), exact=True).fill(value)


def make_one(visit: Visit) -> None:
    Connection.objects.filter(name="made").delete()
    visit.open("/connections/-/new/")
    _fill(visit, Name="made", Bootstrap_servers="127.0.0.1:1", User="me", Password=SECRET)
    visit.page.get_by_label("Security", exact=True).select_option("SASL_PLAINTEXT")
    visit.page.get_by_label("SASL mechanism").select_option("PLAIN")
    visit.press("Test")
    expect(visit.page.locator("[data-verdict=tcp]")).to_contain_text("refuses the connection")
    assert not Connection.objects.filter(name="made").exists()
    visit.press("Create")  # the password still stands there
    visit.told("The connection made was created.")
    made = Connection.objects.get(name="made")
    assert made.properties["bootstrap.servers"] == "127.0.0.1:1" and SECRET not in str(made.properties)
    assert unseal(made.secrets) == {"sasl.password": SECRET}


def change_one(visit: Visit) -> None:
    """The secret is not filled in again, and is kept."""
    make_one(visit)
    visit.open("/connections/alpha/made/change/")
    expect(visit.page.get_by_label("Password", exact=True)).to_have_value("")
    _fill(visit, Description="Orders")
    visit.press("Test")
    expect(visit.page.locator("[data-verdict=tcp]")).to_be_visible()
    visit.press("Save")
    visit.told("The connection made is changed.")
    changed = Connection.objects.get(name="made")
    assert (changed.version, changed.description) == (2, "Orders")
    assert unseal(changed.secrets) == {"sasl.password": SECRET}


def try_one(visit: Visit) -> None:
    visit.open(PAGE)
    visit.press("Test connection")
    expect(visit.page.locator("[data-verdict=tcp]")).to_contain_text("nothing listens there")


def _used(visit: Visit) -> Supervisor:
    """A supervisor that names it, and runs."""
    datasource = visit.site.cast.datasource
    fresh = {"datasource": datasource, "handoff_asked_at": None, "suspended": False}
    supervisor, made = Supervisor.objects.update_or_create(id="user-of-it", defaults=fresh)
    if made:
        spec = spec_for("flights", connection=CLUSTER, groupId="another")
        del spec["ioConfig"]["consumerProperties"]
        canonical = parse_supervisor_spec(spec).canonical()
        SpecVersion.objects.create(supervisor=supervisor, version=1, spec=canonical)
    return supervisor


def _was_restarted(visit: Visit, supervisor: Supervisor) -> None:
    visit.told("hand off to new tasks with its current properties")
    supervisor.refresh_from_db()
    assert supervisor.handoff_asked_at is not None
    supervisor.delete()


def restart(visit: Visit) -> None:
    supervisor = _used(visit)
    visit.open(PAGE)
    visit.press("Restart supervisors that use it…")
    visit.button("Cancel", visit.page.get_by_role("dialog")).click()
    expect(visit.page.get_by_role("dialog")).to_be_hidden()
    visit.answer("Restart supervisors that use it", "Restart supervisors that use it")
    _was_restarted(visit, supervisor)


def restart_on_a_page(visit: Visit) -> None:
    supervisor = _used(visit)
    visit.open(f"{PAGE}confirm/restart/")
    visit.press("Restart supervisors that use it")
    _was_restarted(visit, supervisor)


def _to_delete() -> str:
    fields = {"kind": "kafka", "properties": {"bootstrap.servers": "127.0.0.1:1"}}
    Connection.objects.update_or_create(team=Team.objects.get(name="alpha"), name="doomed", defaults=fields)
    return "/connections/alpha/doomed/"


def _is_deleted(visit: Visit) -> None:
    visit.told("The connection doomed is deleted.")
    assert not Connection.objects.filter(name="doomed").exists()


def delete(visit: Visit) -> None:
    """One that is used is not offered to be deleted, and says why."""
    supervisor = _used(visit)
    visit.open(PAGE)
    expect(visit.page.locator("[data-use='user-of-it']")).to_be_visible()
    expect(visit.page.get_by_text("it can't be deleted")).to_be_visible()
    expect(visit.button("Delete…")).to_have_count(0)
    supervisor.delete()
    visit.open(_to_delete())
    visit.answer("Delete", "Delete")
    _is_deleted(visit)


def delete_on_a_page(visit: Visit) -> None:
    visit.open(f"{_to_delete()}confirm/delete/")
    visit.press("Delete")
    _is_deleted(visit)


def think_better_of_it(visit: Visit) -> None:
    visit.open(f"{PAGE}confirm/delete/")
    visit.press("Cancel")
    visit.page.wait_for_url(f"**{PAGE}")
    assert Connection.objects.filter(name=CLUSTER).exists()


def filter_what_it_holds(visit: Visit) -> None:
    for part in ("topics", "groups"):
        visit.open(f"{PAGE}{part}/")
        visit.page.get_by_label("Name contains").fill("orders")
        visit.press("Filter")
        visit.page.wait_for_url(f"**{PAGE}{part}/?search=orders")
        expect(visit.page.locator("[data-problem]")).to_contain_text("refuses the connection")
