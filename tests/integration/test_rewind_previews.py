"""The page and the command that begin a rewind, with a real broker: it is shown before it begins, and then read."""

from __future__ import annotations

import json

import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from django.test import Client

from controlplane.publishing.models import Rewind
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.rewind_rounds import run_rewinds
from tests.integration.test_command_line import Run, run
from tests.integration.test_rewind_rounds import asks, reads_part, rows_in_use, supervisor, topic
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed

__all__ = ["run", "supervisor", "topic"]
pytestmark = pytest.mark.usefixtures("checked_here")


def page_of(supervisor: Supervisor) -> str:
    return f"/supervisors/{supervisor.pk}/rewinds/"


def sent(page: Element) -> dict[str, str]:
    """What the page's question sends when it is answered with yes."""
    fields = page.one("section", aria_labelledby="plan-title").all("input")
    found = {e.attributes["name"]: e.attributes.get("value", "") for e in fields}
    return {name: value for name, value in found.items() if name != "csrfmiddlewaretoken"}


def test_a_rewind_is_shown_tried_and_begun(supervisor: Supervisor, cast: Cast) -> None:
    owner, address = browsing_as(cast, "owner"), page_of(supervisor)
    shown = parsed(owner.post(address, {"offsets": "0: 0-12", "read_with": "", "preview": "1"}))
    assert "Headgate reads 20 records again with spec version 1, in 1 part" in shown.one("p", data_plan="").text
    assert len(shown.all("tr", data_planned="")) == 1 and not Rewind.objects.exists()
    for more, is_dry in (({"dry_run": "1"}, True), ({}, False)):
        assert owner.post(address, {**sent(shown), **more}).status_code == 302
        rewind = Rewind.objects.latest("pk")
        assert (rewind.dry_run, rewind.choice) == (is_dry, {"offsets": {"0": [[0, 12]]}})
        assert owner.post(address, {"cancel": rewind.pk}).status_code == 302
    nothing = parsed(owner.post(address, {"offsets": "0: 38-40", "preview": "1"}))
    assert "there is nothing to read again" in nothing.text and "Begin rewind" not in nothing.text
    unclear = parsed(owner.post(address, {"preview": "1"}))
    assert "Choose records: by spec version" in unclear.one("div", role="alert").text


def test_others_are_read_with_their_own_version_if_it_is_chosen(supervisor: Supervisor, cast: Cast) -> None:
    owner, address = browsing_as(cast, "owner"), page_of(supervisor)
    shown = parsed(owner.post(address, {"offsets": "0: 0-12", "others": "own", "preview": "1"}))
    assert owner.post(address, sent(shown)).status_code == 302
    assert Rewind.objects.get().choice["others"] == "own"
    assert "others with their own version" in parsed(owner.get(address)).text
    times = {"rows_from": "2025-06-01T00:00", "rows_until": "2025-06-02T00:00", "others": "own", "preview": "1"}
    assert "there are no other records" in parsed(owner.post(address, times)).text


def test_it_begins_with_the_version_that_was_shown(supervisor: Supervisor, cast: Cast) -> None:
    owner, address, current = browsing_as(cast, "owner"), page_of(supervisor), supervisor.current
    shown = parsed(owner.post(address, {"spec_version": "1", "preview": "1"}))
    SpecVersion.objects.create(supervisor=supervisor, version=2, spec=current.spec, secrets=current.secrets)
    Supervisor.objects.filter(pk=supervisor.pk).update(version=2)
    assert owner.post(address, sent(shown)).status_code == 302
    assert Rewind.objects.get().spec_version == 1


def test_what_is_possible_is_rewound(supervisor: Supervisor, cast: Cast, broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        future.result(30)
    owner, address = browsing_as(cast, "owner"), page_of(supervisor)
    shown = parsed(owner.post(address, {"offsets": "0: 0-12", "preview": "1"}))
    assert "Kafka no longer has offsets 0 to 4" in shown.one("tr", data_refused="").text
    assert sent(shown)["only_possible"] == "on" and "Rewind what is possible" in shown.text
    assert owner.post(address, sent(shown)).status_code == 302
    assert [part.ranges for part in Rewind.objects.get().parts.all()] == [[[0, 10, 20]]]
    alone = parsed(owner.post(address, {"offsets": "0: 0-5", "preview": "1"}))
    assert "None of these segments can be recomputed." in alone.text


def test_records_of_a_rewind_are_read_again_by_the_version_before(
    supervisor: Supervisor, cast: Cast, owner: Client
) -> None:
    """In place of an undo, where a merge has ended that."""
    current = supervisor.current
    SpecVersion.objects.create(supervisor=supervisor, version=2, spec=current.spec, secrets=current.secrets)
    Supervisor.objects.filter(pk=supervisor.pk).update(version=2)
    first = asks(owner, supervisor, spec_version=1).json()["rewind"]
    [task] = run_rewinds()
    reads_part(task)
    assert asks(owner, supervisor, spec_version=1).status_code == 409, "its rows are of another rewind now"
    browser, address = browsing_as(cast, "owner"), page_of(supervisor)
    [link] = [a for a in parsed(browser.get(address, {"undo": first})).all("a") if "read the same records" in a.text]
    shown = parsed(browser.get(link.attributes["href"]))
    assert "Headgate reads 20 records again with spec version 1" in shown.one("p", data_plan="").text
    assert browser.post(address, sent(shown)).status_code == 302
    [task] = run_rewinds()
    reads_part(task)
    again = Rewind.objects.latest("pk")
    assert (again.choice, again.spec_version, rows_in_use(supervisor)) == ({"of_rewind": first}, 1, 30)
    refused = parsed(browser.post(address, {"undo": first}, follow=True))
    assert "can't be undone" in refused.text
    odd = asks(owner, supervisor, of_rewind=first + 100)
    assert odd.status_code == 409 and "nothing to read again" in odd.json()["detail"]


def test_a_rewind_by_command_is_shown_first(run: Run, supervisor: Supervisor) -> None:
    code, out, err = run("rewind", supervisor.pk, "--spec-version", "1")
    assert (code, Rewind.objects.exists()) == (1, False) and "--yes" in err
    assert "Reads 20 records again with spec version 1, in 1 part." in out
    code, out, err = run("rewind", supervisor.pk, "--spec-version", "1", "--preview", "-o", "json")
    assert (code, err, json.loads(out)["rewind"], Rewind.objects.exists()) == (0, "", None, False)
    assert run("rewind", supervisor.pk, "--spec-version", "1", "--yes", role="operator")[0] == 1
    code, out, err = run("rewind", supervisor.pk, "--range", "0=0:12", "--others", "own", "--dry-run", "--yes")
    dry = Rewind.objects.get()
    assert (code, err, dry.dry_run, dry.choice["others"]) == (0, "", True, "own") and out.endswith(
        f"Rewind {dry.pk} reads 20 records.\n"
    )
    assert run("cancel-rewind", supervisor.pk, str(dry.pk), "--yes")[1] == f"Rewind {dry.pk}: 1 part cancelled.\n"
    code, out, _ = run("rewind", supervisor.pk, "--spec-version", "1", "--yes")
    number = Rewind.objects.latest("pk").pk
    [task] = run_rewinds()
    reads_part(task)
    code, out, _ = run("rewinds", supervisor.pk)
    assert (code, out.split("\n")[1].split()[:5]) == (0, [str(number), "1", "done", "20", "20"])
    assert len(yaml.safe_load(run("rewinds", supervisor.pk, "-o", "yaml")[1])[0]["parts"]) == 1
    assert run("undo-rewind", supervisor.pk, str(number))[0] == 1
    assert run("undo-rewind", supervisor.pk, str(number), "--yes")[1] == f"Rewind {number}: 1 part undone.\n"
    code, _, err = run("undo-rewind", supervisor.pk, str(number), "--yes")
    assert code == 1 and "nothing to undo" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "choose records"),
        (["--range", "0=1-2"], "0=1500:2000"),
        (["--range", "0=1:2", "--range", "0=3:4"], "twice"),
        (["--published-from", "yesterday"], "published_from"),
        (["--rows-from", "2025-06-01T00:00:00Z"], "rows_from"),
        (["--spec-version", "0"], "spec-version"),
    ],
)
def test_odd_options_begin_nothing(run: Run, supervisor: Supervisor, options: list[str], said: str) -> None:
    code, _, err = run("rewind", supervisor.pk, *options, "--yes")
    assert code == 1 and said in err, err
    assert not Rewind.objects.exists()
