"""The forms that take a spec: every fault at once, input kept, nothing half-made."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from tests.support.broker import Broker
from tests.support.django_cast import SEED, Cast, browsing_as, spec_for
from tests.support.html import parsed

FORMS = ("/tasks/-/new/", "/supervisors/-/new/")


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def made() -> tuple[int, int, int]:
    return Datasource.objects.count(), Task.objects.count(), Supervisor.objects.count()


@pytest.mark.parametrize("example", ["share_group", "offset_range"])
@pytest.mark.parametrize("form", FORMS)
def test_a_form_starts_with_an_example_that_has_to_be_filled_in(owner: Client, form: str, example: str) -> None:
    text = parsed(owner.get(form, {"example": example})).one("textarea", id="id_document").raw_text
    before = made()
    places = ["/dataSchema/dataSource", "/ioConfig/topic", *(["/ioConfig/groupId"] * (example == "share_group"))]
    nested = {"type": json.loads(text)["type"], "spec": {k: v for k, v in json.loads(text).items() if k != "type"}}
    for asked in ({}, {"check": "1"}):
        for document, root in ((text, ""), (json.dumps(nested), "/spec")):
            answer = owner.post(form, {"document": document, **asked})
            assert answer.status_code == 400
            page = parsed(answer)
            pointers = [fault["pointer"] for fault in json.loads(page.one("script", id="spec-errors").raw_text)]
            assert pointers == [root + place for place in places]
            assert "'your_topic' is only an example: enter the topic to read." in page.one(id="problem").text
    filled = text.replace("your_datasource", "d").replace("your_topic", "t").replace("your_group", "g")
    assert "The spec is valid" in parsed(owner.post(form, {"document": filled, "check": "1"})).one("main").text
    assert made() == before


def test_check_only_says_whether_the_topic_is_there(owner: Client, cast: Cast, broker: Broker) -> None:
    topic = broker.topic(partitions=3)
    for name, says, text in (
        (topic, "there", f"Topic {topic} has 3 partitions."),
        ("no-such-topic", "missing", "There is no topic no-such-topic, or this login has no permission to see it"),
    ):
        document = json.dumps(
            spec_for("only-checked", topic=name, consumerProperties={"bootstrap.servers": broker.bootstrap})
        )
        page = parsed(owner.post("/supervisors/-/new/", {"document": document, "check": "1"}))
        assert text in page.one("div", data_topic=says).text
    viewer = parsed(browsing_as(cast, "viewer").post("/tasks/-/new/", {"document": document, "check": "1"}))
    assert "role operator" in viewer.one("div", data_topic="unknown").text, "it is shown no topics"
    away = json.dumps(spec_for("only-checked", consumerProperties={"bootstrap.servers": "no-such-host.invalid:1"}))
    page = parsed(owner.post("/tasks/-/new/", {"document": away, "check": "1"}))
    assert "no-such-host.invalid" in page.one("div", data_topic="unknown").text


def test_a_batch_task_s_example_is_checked_submitted_and_submitted_again(owner: Client) -> None:
    form = "/tasks/-/new/?example=index_parallel"
    text = parsed(owner.get(form)).one("textarea", name="document").raw_text
    assert "is only an example" in parsed(owner.post(form, {"document": text})).one(id="problem").text
    filled = text.replace("your_datasource", "edits")
    assert parsed(owner.post(form, {"document": filled, "check": "1"})).one("div", data_faultless="")
    outside = filled.replace('"inline"', '"local"').replace('"data"', '"no"')
    assert owner.post(form, {"document": outside, "check": "1"}).status_code == 400
    assert not Task.objects.filter(datasource__name="edits").exists()
    answer = owner.post(form, {"document": filled})
    task = Task.objects.get(datasource__name="edits")
    assert (answer["Location"], task.kind) == (f"/tasks/{task.pk}/", "index_parallel")
    again = f"/tasks/-/new/?from={task.pk}"
    kept = parsed(owner.get(again)).one("textarea", name="document").raw_text
    assert parsed(owner.post(again, {"document": kept, "check": "1"})).one("div", data_faultless="")
    assert "index_parallel" not in parsed(owner.get("/supervisors/-/new/")).one("main").text


def test_check_only_says_what_would_change_of_the_spec_that_holds(owner: Client, cast: Cast) -> None:
    away = {"bootstrap.servers": "no-such-host.invalid:1"}
    asked = {"document": json.dumps(spec_for("flights", taskCount=4, consumerProperties=away)), "check": "1"}
    page = parsed(owner.post("/supervisors/-/new/?from=flights", asked))
    changed = [e.text for e in page.all("span", class_="diff-added") + page.all("span", class_="diff-removed")]
    assert '+ "taskCount": 4,' in changed
    assert '- "taskCount": 1,' in changed
    assert not any("suspended" in line or '"id"' in line for line in changed)
    same = {"document": json.dumps(spec_for("flights")), "check": "1"}
    page = parsed(owner.post("/supervisors/-/new/?from=flights", same))
    assert "The spec equals the current version" in page.one("div", data_change="").text
    page = parsed(owner.post("/supervisors/-/new/", asked))
    assert page.all("section", data_change="") == [], "a new one changes nothing"
    assert Supervisor.objects.get(pk="flights").version == 1


def test_the_seed_s_task_is_taken_as_it_is(owner: Client) -> None:
    answer = owner.post("/tasks/-/new/", {"document": json.dumps(SEED)}, follow=True)
    task = Task.objects.get(datasource__name="my_datasource")
    assert answer.redirect_chain == [(f"/tasks/{task.pk}/", 302)]
    assert "Task submitted." in parsed(answer).one("div", class_="alert-success").text
    assert task.status == "PENDING"


def test_a_supervisor_is_made_and_then_changed(owner: Client) -> None:
    for count in (1, 2):
        answer = owner.post("/supervisors/-/new/", {"document": json.dumps(spec_for("fresh", taskCount=count))})
        assert answer["Location"] == "/supervisors/fresh/"
    assert Supervisor.objects.get(pk="fresh").version == 2


@pytest.mark.parametrize("form", FORMS)
def test_every_fault_is_named_by_its_path_and_the_text_is_kept(owner: Client, form: str) -> None:
    spec = spec_for("x")
    spec["dataSchema"]["dataSource"] = "a b"
    spec["ioConfig"]["topik"] = "t"
    spec["ioConfig"]["consumerProperties"] = {"sasl.jaas.config": "x"}
    del spec["ioConfig"]["inputFormat"]
    text = json.dumps(spec, indent=1)
    before = made()
    answer = owner.post(form, {"document": text})
    assert answer.status_code == 400
    page = parsed(answer)
    assert [c.text for c in page.one(id="problem").all("code")] == [
        "dataSchema.dataSource",
        "ioConfig.consumerProperties['sasl.jaas.config']",
        "ioConfig.consumerProperties",
        "ioConfig.inputFormat",
        "ioConfig.topik",
    ]
    assert page.one("textarea", id="id_document").raw_text.strip() == text
    pointers = [fault["pointer"] for fault in json.loads(page.one("script", id="spec-errors").raw_text)]
    assert pointers == [
        "/dataSchema/dataSource",
        "/ioConfig/consumerProperties/sasl.jaas.config",
        "/ioConfig/consumerProperties",
        "/ioConfig/inputFormat",
        "/ioConfig/topik",
    ]
    assert made() == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "required"),
        ("   ", "Not JSON"),
        ("{", "line 1, column 2"),
        ("[1, 2]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "JSON not accepted: it is nested deeper"),
        ("{}", "required field is missing"),
        ("x" * 1_000_001, "at most 1000000 characters"),
        ('{"type": "parquet"}', "index_kafka_share_group"),
        ('{"a\\u0000": "\\ud800"}', "a NUL character or half a surrogate pair"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_text_that_is_no_spec_is_a_clear_error(owner: Client, form: str, text: str, says: str) -> None:
    before = made()
    answer = owner.post(form, {"document": text})
    assert answer.status_code == 400
    assert says in parsed(answer).one(id="problem").text
    assert made() == before


def test_a_taken_name_is_a_conflict_on_the_page(cast: Cast) -> None:
    answer = browsing_as(cast, "outsider").post("/tasks/-/new/", {"document": json.dumps(spec_for("flights"))})
    assert answer.status_code == 409
    assert "is taken" in parsed(answer).one(id="problem").text


def test_a_viewer_is_told_which_role_it_needs(cast: Cast) -> None:
    answer = browsing_as(cast, "viewer").post("/tasks/-/new/", {"document": json.dumps(spec_for("flights"))})
    assert answer.status_code == 403
    assert "This needs the role operator in team alpha." in parsed(answer).one("main").text


def test_the_team_is_asked_for_where_there_is_a_choice(owner: Client, cast: Cast) -> None:
    assert parsed(owner.get("/tasks/-/new/")).one("main").all("select", name="team") == []
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.ADMIN)
    options = [o.text for o in parsed(owner.get("/tasks/-/new/")).one("select", name="team").all("option")]
    assert options == ["Choose…", "alpha", "beta"]
    spec = json.dumps(spec_for("brand-new"))
    unsaid = owner.post("/tasks/-/new/", {"document": spec})
    assert unsaid.status_code == 400
    assert "team" in parsed(unsaid).one(id="problem").text
    assert owner.post("/tasks/-/new/", {"document": spec, "team": "gamma"}).status_code == 400
    assert owner.post("/tasks/-/new/", {"document": spec, "team": "beta"}).status_code == 302
    assert Datasource.objects.get(name="brand-new").team == cast.beta


def test_a_task_is_submitted_again_from_an_earlier_one(owner: Client, cast: Cast) -> None:
    cast.task.spec = {**cast.task.spec, "id": cast.task.pk, "suspended": False}
    cast.task.save()
    page = parsed(owner.get(f"/tasks/-/new/?from={cast.task.pk}"))
    answer = owner.post("/tasks/-/new/", {"document": page.one("textarea", id="id_document").raw_text})
    assert answer.status_code == 302
    assert Task.objects.filter(datasource=cast.datasource).count() == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_spec_of_another_team_is_not_found(cast: Cast, form: str) -> None:
    outsider = browsing_as(cast, "outsider")
    assert outsider.get(f"{form}?from=flights").status_code == 404
    assert outsider.get(f"{form}?from={cast.task.pk}").status_code == 404
