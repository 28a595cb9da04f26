"""The command ``headgate`` and the Python client on a real site."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from django.test import Client
from django.utils import timezone

from controlplane.alerts.models import Rule, Silence
from controlplane.connections.models import Connection
from controlplane.connections.secrets import unseal
from controlplane.supervisors.models import Supervisor
from headgate.cli import context
from headgate.cli.main import main
from headgate.client import ChangedMeanwhile, NotAllowed, NotFound, NotLoggedIn, shapes
from headgate.client import Client as Site
from tests.support.django_cast import Cast, spec_for
from tests.support.site_through import URL, Through, client_as, token_of

SECRET = "a-password-nobody-may-see"
CONNECTION = {
    "kind": "connection",
    "team": "alpha",
    "name": "orders-kafka",
    "spec": {
        "kind": "kafka",
        "properties": {
            "bootstrap.servers": "10.0.0.1:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "headgate",
            "sasl.password": "${ENV:ORDERS_PASSWORD}",
        },
    },
}
RECEIVER = {
    "kind": "alert-receiver",
    "team": "alpha",
    "name": "night",
    "spec": {"kind": "email", "addresses": ["night@example.org"]},
}
RULE = {
    "kind": "alert-rule",
    "team": "alpha",
    "name": "orders behind",
    "spec": {"kind": "behind", "datasource": "orders", "receivers": ["night"]},
}
RETENTION = {
    "kind": "retention",
    "name": "orders",
    "spec": {"rules": [{"type": "loadByPeriod", "period": "P30D"}, {"type": "dropForever"}]},
}
COMPACTION = {"kind": "compaction", "name": "orders", "spec": {"config": {"skipOffsetFromLatest": "P2D"}}}
SUPERVISOR = {"kind": "supervisor", "team": "alpha", "spec": spec_for("orders")}
ALL = (RULE, COMPACTION, RETENTION, SUPERVISOR, RECEIVER, CONNECTION)

pytestmark = pytest.mark.usefixtures("checked_here")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(cast: Cast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a command as a role: its exit code, standard output and error."""
    monkeypatch.setattr(context, "transport", Through)
    monkeypatch.setenv("HEADGATE_CONFIG", str(tmp_path / "profiles.json"))
    monkeypatch.setenv("HEADGATE_URL", URL)
    monkeypatch.setenv("ORDERS_PASSWORD", SECRET)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def call(*arguments: str, role: str = "owner") -> tuple[int, str, str]:
        monkeypatch.setenv("HEADGATE_TOKEN", token_of(cast, role))
        code = main(arguments)
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def written(folder: Path, *documents: dict[str, Any]) -> str:
    """The path of a file that holds them."""
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


# Reading


def test_lists_and_one(run: Run) -> None:
    code, out, _ = run("get", "sv")
    assert code == 0 and out.splitlines()[0].split()[:3] == ["ID", "TEAM", "DATASOURCE"]
    assert out.splitlines()[1].split()[:3] == ["flights", "alpha", "flights"]
    assert json.loads(run("get", "supervisor", "flights", "-o", "json")[1])["id"] == "flights"
    assert yaml.safe_load(run("get", "datasources", "-o", "yaml")[1])[0]["rows"] == 1500
    assert yaml.safe_load(run("describe", "connection", "alpha/orders-schemas")[1])["kind"] == "schema_registry"


@pytest.mark.parametrize("kind", ["supervisor", "task", "datasource", "connection", "alert-rule", "team", "alert"])
def test_every_kind_is_listed(run: Run, kind: str) -> None:
    code, out, err = run("--team", "alpha", "get", kind)
    assert (code, err) == (0, "") and out


def test_what_is_another_teams_is_not_there(run: Run) -> None:
    code, out, err = run("get", "supervisor", "flights", role="outsider")
    assert (code, out) == (1, "") and "flights" in err


def test_a_record_and_the_quarantine(run: Run) -> None:
    assert "unparseable" in run("record", "flights-topic", "0", "7")[1]
    assert "Malformed JSON" in run("quarantine", "flights")[1]


def test_sql(run: Run) -> None:
    query = "SELECT count(*) AS n, max(__time) AS last_one FROM flights WHERE __time > '2100-01-01'"
    code, out, err = run("sql", query)
    assert (code, [line.split() for line in out.splitlines()], err) == (0, [["N", "LAST", "ONE"], ["0"]], "")
    assert json.loads(run("sql", query, "-o", "json")[1])["rows"] == [[0, None]]
    assert yaml.safe_load(run("sql", f"EXPLAIN {query}")[1])["tables"][0]["files"] == 0
    code, out, err = run("sql", "SELECT * FROM nothing")
    assert (code, out) == (1, "") and "There is no datasource 'nothing'" in err


def test_a_log_a_sample_and_waiting(run: Run, cast: Cast, tmp_path: Path) -> None:
    assert run("logs", "flights")[0] == 0
    file = tmp_path / "sample.yaml"
    file.write_text(
        "\ufeff"
        + yaml.safe_dump(
            {
                "type": "inline",
                "spec": {
                    "dataSchema": {"timestampSpec": {"column": "t"}, "dimensionsSpec": {"useSchemaDiscovery": True}},
                    "ioConfig": {
                        "inputSource": {"type": "inline", "data": '{"t": "2026-11-27T00:00:00Z", "city": "Köln"}'},
                        "inputFormat": {"type": "json"},
                    },
                },
            },
            allow_unicode=True,
        )
    )
    code, out, err = run("sample", "-f", str(file))
    assert (code, err) == (0, "") and "1 stored" in out and "Köln" in out
    code, _, err = run("wait", "datasource", "flights", "--until", "complete", "--time", "2026-01-01", "--timeout", "0")
    assert code == 1 and "complete until" in err
    cast.task.status = "SUCCESS"
    cast.task.save()
    assert run("wait", "task", cast.task.pk, "--until", "complete")[0] == 0
    run("suspend", "flights")
    code, _, err = run("wait", "supervisor", "flights", "--until", "healthy")
    assert code == 1 and "suspended" in err
    assert run("wait", "team", "alpha", "--until", "healthy")[0] == 1


def test_actions_on_a_supervisor(run: Run, cast: Cast) -> None:
    assert run("suspend", "flights")[0] == 0 and Supervisor.objects.get().suspended
    assert run("suspend", "flights")[0] == 0  # it is what was asked for
    assert run("resume", "flights")[0] == 0 and not Supervisor.objects.get().suspended
    assert run("handoff", "flights")[0] == 0 and Supervisor.objects.get().handoff_asked_at is not None
    code, _, err = run("suspend", "flights", role="viewer")
    assert code == 1 and err
    code, _, err = run("reset", "flights")
    assert code == 1 and "--yes" in err


def test_login_keeps_a_profile_that_nobody_else_reads(
    run: Run, cast: Cast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = token_of(cast, "owner")
    monkeypatch.delenv("HEADGATE_URL")
    monkeypatch.delenv("HEADGATE_TOKEN", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
    assert main(["login", URL]) == 0
    out = capsys.readouterr().out
    assert "as owner" in out and token not in out
    assert (tmp_path / "profiles.json").stat().st_mode & 0o077 == 0
    assert main(["get", "supervisors"]) == 0
    assert "flights" in capsys.readouterr().out
    assert main(["--url", "http://elsewhere.example", "get", "supervisors"]) == 1
    assert "no token" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("wrong\n"))
    assert main(["login", URL, "--profile", "other"]) == 1
    assert "other" not in (tmp_path / "profiles.json").read_text()


# apply


def test_a_whole_site_is_planned_applied_and_then_unchanged(run: Run, cast: Cast, tmp_path: Path) -> None:
    file = written(tmp_path, *ALL)
    code, plan, err = run("apply", "-f", file, "--dry-run")
    assert (code, err) == (2, "") and "6 to create, 0 to change, 0 to delete" in plan
    assert not Supervisor.objects.filter(pk="orders").exists() and not Connection.objects.filter(name="orders-kafka")
    code, out, err = run("apply", "-f", file, "--yes")
    assert (code, err) == (0, "")
    stored = Connection.objects.get(name="orders-kafka")
    assert SECRET in unseal(stored.secrets).values()
    assert Rule.objects.get(name="orders behind").receivers.get().name == "night"
    assert SECRET not in plan + out
    code, out, _ = run("apply", "-f", file, "--dry-run")
    assert (code, out) == (0, out) and "0 to create, 0 to change, 0 to delete, 6 unchanged" in out


def test_a_change_shows_its_diff_and_asks(run: Run, cast: Cast, tmp_path: Path) -> None:
    file = written(tmp_path, {"kind": "supervisor", "spec": spec_for("flights", taskCount=2)})
    code, out, err = run("apply", "-f", file)
    assert code == 1 and "--yes" in err and Supervisor.objects.get().version == 1
    assert "~ supervisor flights" in out and any(re.match(r' *\+ +"taskCount": 2', line) for line in out.splitlines())
    assert run("apply", "-f", file, "--yes")[0] == 0 and Supervisor.objects.get().version == 2


def test_a_spec_alone_is_a_supervisor(run: Run, cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_text(json.dumps(spec_for("orders")))
    assert run("apply", "-f", str(tmp_path), "--yes")[0] == 0
    assert Supervisor.objects.get(pk="orders").datasource.team == cast.alpha


def test_faults_name_their_file_and_change_nothing(run: Run, cast: Cast, tmp_path: Path) -> None:
    wrong = {"kind": "supervisor", "spec": spec_for("orders", taskCount=-1)}
    good = {"kind": "supervisor", "spec": spec_for("others")}
    code, _, err = run("apply", "-f", written(tmp_path, good, wrong), "--yes")
    assert code == 1 and "document 2" in err and "taskCount" in err
    assert not Supervisor.objects.filter(pk="others").exists()


def test_prune_deletes_what_the_files_lack(run: Run, cast: Cast, tmp_path: Path) -> None:
    assert run("apply", "-f", written(tmp_path, CONNECTION, SUPERVISOR), "--yes")[0] == 0
    file = written(tmp_path, SUPERVISOR, CONNECTION)
    code, out, _ = run("apply", "-f", file, "--prune")
    assert code == 1  # whose?
    code, out, _ = run("--team", "alpha", "apply", "-f", file, "--dry-run", "--prune")
    assert code == 2 and "- supervisor flights" in out and "- connection orders-schemas" in out
    assert "2 to delete" in out
    assert run("--team", "alpha", "apply", "-f", file, "--prune", "--yes")[0] == 0
    assert Supervisor.objects.get(pk="flights").terminated_at is not None
    assert not Connection.objects.filter(name="orders-schemas").exists()
    assert run("--team", "alpha", "apply", "-f", file, "--prune", "--dry-run")[0] == 0


MEMBER = {"kind": "member", "team": "alpha", "name": "viewer", "spec": {"role": "operator"}}
INVITED = {"kind": "member", "team": "alpha", "name": "somebody", "spec": {"role": "viewer"}}


def silence(reason: str, **spec: Any) -> dict[str, Any]:
    ends_at = (timezone.now() + timedelta(days=2)).isoformat()
    return {"kind": "alert-silence", "team": "alpha", "name": reason, "spec": {"ends_at": ends_at, **spec}}


def test_members_get_their_roles_and_others_are_invited(run: Run, cast: Cast, tmp_path: Path) -> None:
    file = written(tmp_path, MEMBER, INVITED)
    code, plan, err = run("apply", "-f", file, "--dry-run")
    assert (code, err) == (2, "") and "1 to create, 1 to change, 0 to delete" in plan
    assert "    -role: viewer" in plan and "    +role: operator" in plan
    assert cast.alpha.memberships.get(user__username="viewer").role == "viewer" and not cast.alpha.invitations.exists()
    assert run("apply", "-f", file, "--yes")[0] == 0
    assert cast.alpha.memberships.get(user__username="viewer").role == "operator"
    assert cast.alpha.invitations.get().username == "somebody"
    assert run("apply", "-f", file, "--dry-run")[0] == 0
    assert run("apply", "-f", file, "--dry-run", role="operator")[0] == 1


def test_prune_removes_members_that_the_files_lack(run: Run, cast: Cast, tmp_path: Path) -> None:
    """Never the last admin."""
    owner = {"kind": "member", "team": "alpha", "name": "owner", "spec": {"role": "admin"}}
    run("apply", "-f", written(tmp_path, INVITED), "--yes")
    file = written(tmp_path, owner, MEMBER)
    code, plan, _ = run("--team", "alpha", "apply", "-f", file, "--dry-run", "--prune")
    assert code == 2 and "- member operator" in plan and "- member somebody" in plan and "2 to delete" in plan
    assert run("--team", "alpha", "apply", "-f", file, "--prune", "--yes")[0] == 0
    assert sorted(cast.alpha.memberships.values_list("user__username", flat=True)) == ["owner", "viewer"]
    assert not cast.alpha.invitations.exists()
    code, _, err = run("--team", "alpha", "apply", "-f", written(tmp_path, MEMBER), "--prune", "--yes")
    assert code == 1 and "admin" in err
    assert cast.alpha.memberships.filter(user__username="owner").exists()


def test_a_silence_is_created_once_and_replaced_when_it_changes(run: Run, cast: Cast, tmp_path: Path) -> None:
    moved = silence("Kafka is moved", rule="orders behind")
    file = written(tmp_path, RECEIVER, SUPERVISOR, RULE, moved)
    code, plan, err = run("apply", "-f", file, "--dry-run")
    assert (code, err) == (2, "") and "+ alert-silence Kafka is moved" in plan and not Silence.objects.exists()
    assert run("apply", "-f", file, "--yes")[::2] == (0, "")
    assert Silence.objects.get().rule == Rule.objects.get(name="orders behind")
    assert run("apply", "-f", file, "--dry-run")[0] == 0
    shorter = {**moved, "spec": {**moved["spec"], "ends_at": (timezone.now() + timedelta(days=1)).isoformat()}}
    file = written(tmp_path, shorter)
    code, plan, _ = run("apply", "-f", file, "--dry-run")
    assert code == 2 and "1 to change" in plan and Silence.objects.count() == 1
    assert run("apply", "-f", file, "--yes")[0] == 0
    assert Silence.objects.filter(ends_at__gt=timezone.now()).count() == 1
    assert run("apply", "-f", file, "--dry-run")[0] == 0


def test_a_silence_that_is_over_changes_nothing(run: Run, cast: Cast, tmp_path: Path) -> None:
    over = silence("It was moved", ends_at="2025-06-01T00:00:00Z")
    code, plan, err = run("apply", "-f", written(tmp_path, over), "--dry-run")
    assert (code, err) == (0, "") and "Its time is over." in plan
    for spec, said in (({"for_s": 60}, "ends_at instead of for_s"), ({"rule": "none"}, "no alert-rule none")):
        code, _, err = run("apply", "-f", written(tmp_path, silence("It is moved", **spec)), "--dry-run")
        assert code == 1 and said in err


def test_prune_ends_silences(run: Run, cast: Cast, tmp_path: Path) -> None:
    run("apply", "-f", written(tmp_path, silence("one"), silence("two")), "--yes")
    assert run("--team", "alpha", "apply", "-f", written(tmp_path, silence("one")), "--prune", "--yes")[0] == 0
    assert [s.reason for s in Silence.objects.filter(ends_at__gt=timezone.now())] == ["one"]


def test_a_secret_is_sent_again_only_when_asked(
    run: Run, cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, CONNECTION)
    run("apply", "-f", file, "--yes")
    monkeypatch.setenv("ORDERS_PASSWORD", "another-password")
    assert run("apply", "-f", file, "--dry-run")[0] == 0
    assert run("apply", "-f", file, "--rotate-secrets", "--yes")[0] == 0
    assert "another-password" in unseal(Connection.objects.get(name="orders-kafka").secrets).values()


def test_what_is_exported_is_unchanged_when_it_is_applied(run: Run, cast: Cast, tmp_path: Path) -> None:
    long_one = silence("x" * 500, datasource="orders")
    run(
        "apply",
        "-f",
        written(tmp_path, *ALL, INVITED, silence("Kafka is moved", rule="orders behind"), long_one),
        "--yes",
    )
    folder = tmp_path / "exported"
    code, out, err = run("--team", "alpha", "export", "--to", str(folder))
    assert code == 0, err
    assert SECRET not in "".join(path.read_text() for path in folder.iterdir())
    kinds = [yaml.safe_load(path.read_text())["kind"] for path in folder.iterdir()]
    assert (kinds.count("member"), kinds.count("alert-silence")) == (4, 2)
    code, out, err = run("apply", "-f", str(folder), "--dry-run", role="superuser")
    assert (code, err) == (0, ""), out


def test_a_plan_that_is_out_of_date_overwrites_nothing(cast: Cast, owner: Client) -> None:
    site = client_as(cast, "owner")
    plan = site.plan_supervisor(spec_for("flights", taskCount=2))
    owner.post("/api/v1/supervisors/", spec_for("flights", taskCount=3), content_type="application/json")
    with pytest.raises(ChangedMeanwhile, match="version 2"):
        site.submit_supervisor(spec_for("flights", taskCount=2), version=plan["version"])


# The client


def test_errors_by_what_a_caller_can_do(cast: Cast) -> None:
    with pytest.raises(NotFound):
        client_as(cast, "outsider").supervisor("flights")
    with pytest.raises(NotAllowed):
        client_as(cast, "viewer").act("flights", "suspend")
    with pytest.raises(NotLoggedIn):
        Site(URL, "wrong", transport=Through()).supervisor("flights")


def test_all_pages_of_a_list(cast: Cast) -> None:
    site = client_as(cast, "owner")
    for number in range(3):
        site.submit_task(spec_for("flights", groupId=f"g{number}"), key=f"k{number}")
    listed = list(site.pages("/api/v1/tasks/", limit=2))
    assert len(listed) == 4 == len({task["id"] for task in listed})


def test_shapes_are_those_of_openapi(client: Client, db: None) -> None:
    document = client.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    schemas = document["components"]["schemas"]
    names = {"Record": "Record", "SupervisorDetail": "SupervisorDetail", "Task": "Task"}
    shaped = {n: s for n, s in vars(shapes).items() if isinstance(s, type) and hasattr(s, "__total__")}
    shaped.pop("DiffLine"), shaped.pop("TypedDict", None)
    assert len(shaped) > 8
    for name, shape in shaped.items():
        schema = schemas[names.get(name, name)]
        assert set(get_type_hints(shape)) <= set(schema["properties"]), name
