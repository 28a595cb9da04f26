"""What a spec may make Headgate connect to, and with which secrets: refusals over REST, and how secrets are kept."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from controlplane.config import env
from controlplane.connections import secrets
from controlplane.connections.client_properties import PropertyProblem, client_properties
from controlplane.connections.secrets import SecretsLost, seal, unseal
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.launcher import _spark_command
from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.kafka.providers import EnvironmentVariable
from ingestion.specs.messages.protocol import Assignment
from tests.support.certificates import authority
from tests.support.django_cast import Cast, spec_for

pytestmark = pytest.mark.usefixtures("checked_here")

TASKS = "/api/v1/tasks/"
SUPERVISORS = "/api/v1/supervisors/"
VALIDATE = "/api/v1/validate/"
SAMPLERS = ("/api/v1/sampler/", "/druid/indexer/v1/sampler")
CANARY = "canary-4711"
REGISTRY = {"type": "schema_registry", "url": "http://10.0.0.1:8081"}


@pytest.fixture
def production(settings: Any) -> None:
    """The policy as it is when nothing is set."""
    settings.ADDRESS_POLICY = AddressPolicy()


def with_properties(name: str = "flights", **properties: Any) -> dict[str, Any]:
    return spec_for(name, consumerProperties={"bootstrap.servers": "10.0.0.1:9092", **properties})


def with_registry(name: str = "flights", **changes: Any) -> dict[str, Any]:
    written = {"type": "avro_stream", "avroBytesDecoder": {**REGISTRY, **changes}}
    return spec_for(name, inputFormat={"type": "kafka", "valueFormat": written})


def post(client: Client, path: str, document: Any) -> Any:
    return client.post(path, json.dumps(document), content_type="application/json")


def refusals(owner: Client, spec: dict[str, Any]) -> dict[str, str]:
    """Pointer → message; the same from each address that takes a spec, which changes nothing."""
    before = (Task.objects.count(), Supervisor.objects.count(), SpecVersion.objects.count())
    nested = {"type": spec["type"], "spec": {k: v for k, v in spec.items() if k != "type"}}
    found = [
        (_faults(post(owner, TASKS, spec)), ""),
        (_faults(post(owner, SUPERVISORS, spec)), ""),
        (_faults(post(owner, TASKS, nested)), "/spec"),
        (_faults(post(owner, VALIDATE, {"kind": "supervisor", "spec": spec})), "/spec"),
        *((_faults(post(owner, sampler, spec)), "") for sampler in SAMPLERS),
        *((_faults(post(owner, sampler, nested)), "/spec") for sampler in SAMPLERS),
    ]
    first = found[0][0]
    assert all(faults == {prefix + p: m for p, m in first.items()} for faults, prefix in found)
    assert (Task.objects.count(), Supervisor.objects.count(), SpecVersion.objects.count()) == before
    return first


def _faults(answer: Any) -> dict[str, str]:
    assert answer.status_code == 400, answer.content
    assert CANARY not in answer.content.decode()
    body = answer.json()
    return {e["pointer"]: e["detail"] for e in body.get("errors") or body["context"]["errors"]}


# Addresses


@pytest.mark.usefixtures("production")
@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("127.0.0.1:9092", "loopback"),
        ("localhost:9092", "loopback"),
        ("10.0.0.1:9092,2130706433:9092", "loopback"),
        ("0x7f.1:9092", "loopback"),
        ("[::1]:9092", "loopback"),
        ("[::ffff:127.0.0.1]:9092", "loopback"),
        ("169.254.169.254:80", "metadata"),
        ("0.0.0.0:9092", "this machine"),
        ("10.0.0.1:22", "port 22"),
    ],
)
def test_row_3_brokers_that_are_refused(owner: Client, servers: str, message: str) -> None:
    """Row 3 of the security checklist: brokers that are refused."""
    found = refusals(owner, with_properties(**{"bootstrap.servers": servers}))
    assert list(found) == ["/ioConfig/consumerProperties/bootstrap.servers"]
    assert message in found["/ioConfig/consumerProperties/bootstrap.servers"]


@pytest.mark.usefixtures("production")
@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"url": "http://127.0.0.1:8081"}, "/url", "loopback"),
        ({"url": "https://localhost"}, "/url", "loopback"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "/url", "metadata"),
        ({"url": None, "urls": ["http://10.0.0.1", "http://[::1]:8081"]}, "/urls/1", "loopback"),
        ({"url": "http://10.0.0.1:25"}, "/url", "port 25"),
        ({"headers": {"X": {"type": "environment", "variable": "PATH"}}}, "/headers/X", "SPEC_SECRET_"),
    ],
)
def test_row_4_registries_that_are_refused(owner: Client, changes: dict[str, Any], pointer: str, message: str) -> None:
    """Row 4 of the security checklist: registries that are refused."""
    found = refusals(owner, with_registry(**changes))
    assert list(found) == [f"/ioConfig/inputFormat/valueFormat/avroBytesDecoder{pointer}"]
    assert message in next(iter(found.values()))


@pytest.mark.usefixtures("production")
def test_a_name_that_is_not_known_here_is_let_through(owner: Client) -> None:
    spec = with_properties(**{"bootstrap.servers": "nowhere.invalid:9092"})
    assert post(owner, TASKS, spec).status_code == 201


@pytest.mark.usefixtures("production")
def test_the_page_that_checks_a_spec_says_the_same(owner: Client, cast: Cast) -> None:
    owner.force_login(cast.users["owner"])
    spec = with_properties(**{"bootstrap.servers": "127.0.0.1:9092"})
    answer = owner.post("/tasks/-/new/", {"document": json.dumps(spec), "check": "1"})
    assert answer.status_code == 400
    assert "is a loopback address" in answer.content.decode()


# Properties


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"debug": "all"}, "debug"),
        ({"enable.ssl.certificate.verification": False}, "enable.ssl.certificate.verification"),
        ({"ssl.endpoint.identification.algorithm": ""}, "ssl.endpoint.identification.algorithm"),
    ],
)
def test_row_10_insecure_properties_need_the_administrator(
    owner: Client, settings: Any, given: dict[str, Any], name: str
) -> None:
    """Row 10 of the security checklist: insecure properties need the administrator."""
    found = refusals(owner, with_properties(**given))
    assert list(found) == [f"/ioConfig/consumerProperties/{name}"]
    assert "HEADGATE_ALLOW_INSECURE_KAFKA" in found[f"/ioConfig/consumerProperties/{name}"]
    settings.ALLOW_INSECURE_KAFKA = True
    assert post(owner, TASKS, with_properties(**given)).status_code == 201


@pytest.mark.parametrize("variable", ["HEADGATE_SECRET_KEY", "DATABASE_URL", "SPEC_SECRET_", "PATH", "spec_secret_a"])
def test_row_7_other_variables_of_the_environment_are_refused(owner: Client, variable: str) -> None:
    """Row 7 of the security checklist: other variables of the environment are refused."""
    password: dict[str, Any] = {"sasl.password": {"type": "environment", "variable": variable}}
    found = refusals(owner, with_properties(**password))
    assert found == {
        "/ioConfig/consumerProperties/sasl.password": (
            "a spec may name only environment variables that begin with SPEC_SECRET_"
        )
    }


def test_row_7_a_variable_that_is_not_there_and_one_that_is(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 7 of the security checklist: a variable that is not there and one that is."""
    password: dict[str, Any] = {"sasl.password": {"type": "environment", "variable": "SPEC_SECRET_KAFKA"}}
    spec = with_properties(**password)
    assert "SPEC_SECRET_KAFKA is not set" in next(iter(refusals(owner, spec).values()))
    monkeypatch.setenv("SPEC_SECRET_KAFKA", CANARY)
    made = post(owner, TASKS, spec)
    assert made.status_code == 201
    shown = made.json()["spec"]["spec"]["ioConfig"]["consumerProperties"]
    assert shown["sasl.password"] == {"type": "environment", "variable": "SPEC_SECRET_KAFKA"}
    assert CANARY not in made.content.decode()
    assert assigned(made.json()["id"]).consumer_properties["sasl.password"] == CANARY


@pytest.mark.parametrize("prefix", ["HEADGATE_", "HEADGATE_SECRET_KE", "D", ""])
def test_row_7_the_prefix_fits_none_of_the_settings(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    """Row 7 of the security checklist: the prefix fits none of the settings."""
    monkeypatch.setenv("HEADGATE_SECRET_PREFIX", prefix)
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_SECRET_PREFIX must not be the beginning of"):
        env.prefix("HEADGATE_SECRET_PREFIX", "SPEC_SECRET_")


def test_what_the_client_itself_does_not_take_is_told(owner: Client) -> None:
    right = authority()
    store = {"ssl.certificate.pem": right.pem, "ssl.key.pem": right.key_pem("right"), "ssl.key.password": CANARY}
    store |= {"security.protocol": "SSL"}
    assert "ssl.key.pem" in refusals(owner, with_properties(**store))["/ioConfig/consumerProperties"]
    assert (
        "fetch.min.bytes"
        in refusals(owner, with_properties(**{"fetch.min.bytes": "many"}))["/ioConfig/consumerProperties"]
    )


# Stores in a folder


def read_store(place: str, kind: str = "PKCS12", password: str = "x", store: str = "ssl.keystore") -> dict[str, str]:
    return client_properties(
        {f"{store}.location": place, f"{store}.type": kind, f"{store}.password": password, "bootstrap.servers": "k:1"}
    )


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("../secret", "is not in the folder for keys"),
        ("/etc/passwd", "is not in the folder for keys"),
        ("link", "is not in the folder for keys"),
        ("none", "can't be read: No such file"),
        (".", "can't be read: Is a directory"),
        ("a\0b", "can't be read: not a path"),
        ("store.jks", "keytool can't read the JKS store"),
        ("garbage", "not a PKCS12 or JKS store, or the password is wrong"),
        ("trust", "the file has no private key"),
        ("huge", "is larger than"),
    ],
)
def test_row_2_only_stores_in_the_folder_are_read(tmp_path: Path, settings: Any, place: str, message: str) -> None:
    """Row 2 of the security checklist: only stores in the folder are read."""
    folder = tmp_path / "keys"
    folder.mkdir()
    (tmp_path / "secret").write_text(CANARY)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "store.jks").write_bytes(b"\xfe\xed\xfe\xed" + b"\0" * 100)
    (folder / "garbage").write_text(CANARY)
    (folder / "trust").write_bytes(authority().trust_store("x"))
    (folder / "huge").write_bytes(bytes(1024 * 1024 + 1))
    settings.KEY_FOLDER = str(folder)
    with pytest.raises(PropertyProblem) as caught:
        read_store(place)
    assert message in caught.value.reason
    assert CANARY not in str(caught.value)
    assert caught.value.name == "ssl.keystore.location"


def test_without_a_folder_no_file_is_read(owner: Client) -> None:
    spec = with_properties(**{"ssl.truststore.type": "PEM", "ssl.truststore.location": "/etc/ssl/ca.pem"})
    assert "HEADGATE_KEY_FOLDER" in refusals(owner, spec)["/ioConfig/consumerProperties/ssl.truststore.location"]


# Secrets at rest

ROOT = authority()
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
KEYS = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": ROOT.pem, "ssl.keystore.key": ROOT.key_pem()}


def assigned(task_id: str) -> Assignment:
    """What the task's application is told."""
    token = new_token(Task.objects.get(pk=task_id))
    answer = Client(headers={"Authorization": f"Bearer {token}"}).get(f"/internal/tasks/{task_id}/assignment")
    assert answer.status_code == 200, answer.content
    return Assignment.model_validate_json(answer.content)


def test_row_6_a_registrys_secrets_are_sealed_and_go_to_the_application_alone(
    owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 6 of the security checklist: a registry's secrets are sealed and go to the application alone."""
    monkeypatch.setenv("SPEC_SECRET_TOKEN", "from the environment")
    access: dict[str, Any] = {
        "config": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": f"fred:{CANARY}"},
        "headers": {"X-Key": CANARY, "X-Token": {"type": "environment", "variable": "SPEC_SECRET_TOKEN"}},
    }
    made = post(owner, TASKS, with_registry(**access))
    task = Task.objects.get(pk=made.json()["id"])
    assert CANARY not in f"{task.spec} {task.secrets} {made.content!r} {owner.get(TASKS + task.pk + '/').content!r}"
    written = assigned(task.pk).spec.ioConfig.inputFormat.valueFormat.avroBytesDecoder  # type: ignore[union-attr]
    assert written.config == access["config"]  # type: ignore[union-attr]
    assert written.headers == {"X-Key": CANARY, "X-Token": "from the environment"}  # type: ignore[union-attr]
    checked = post(owner, VALIDATE, {"kind": "task", "spec": with_registry(**access)})
    assert CANARY not in checked.content.decode() and "******" in checked.content.decode()


def versions(name: str) -> list[dict[str, str]]:
    return [unseal(v.secrets) for v in SpecVersion.objects.filter(supervisor_id=name).order_by("version")]


def test_row_6_secrets_are_kept_while_the_connection_stays_the_same(owner: Client) -> None:
    """Row 6 of the security checklist: secrets are kept while the connection stays the same."""
    first = with_properties("kept", **LOGIN, **KEYS, **{"sasl.password": CANARY})
    assert post(owner, SUPERVISORS, first).status_code == 201
    shown = {k: v for k, v in KEYS.items() if k != "ssl.keystore.key"}
    again = with_properties("kept", **LOGIN, **shown, **{"client.id": "another"})
    assert post(owner, SUPERVISORS, again).status_code in (200, 201)
    assert versions("kept") == [{"sasl.password": CANARY, "ssl.keystore.key": KEYS["ssl.keystore.key"]}] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"bootstrap.servers": "10.6.6.6:9092"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"ssl.ca.pem": ROOT.pem},
        {"sasl.username": "you"},
        {"ssl.endpoint.identification.algorithm": "https"},
    ],
)
def test_row_6_kept_secrets_are_not_sent_elsewhere(owner: Client, change: dict[str, str]) -> None:
    """Row 6 of the security checklist: kept secrets are not sent elsewhere."""
    assert post(owner, SUPERVISORS, with_properties("kept", **LOGIN, **{"sasl.password": CANARY})).status_code == 201
    answer = post(owner, SUPERVISORS, with_properties("kept", **{**LOGIN, **change}))
    assert list(_faults(answer)) == ["/ioConfig/consumerProperties/sasl.password"]
    assert len(versions("kept")) == 1


def test_row_6_a_registrys_secrets_are_kept_for_that_registry_only(owner: Client) -> None:
    """Row 6 of the security checklist: a registry's secrets are kept for that registry only."""
    assert post(owner, SUPERVISORS, with_registry("kept", headers={"X-Key": CANARY})).status_code == 201
    without = with_registry("kept")
    without["ioConfig"]["taskCount"] = 2
    post(owner, SUPERVISORS, without)
    post(owner, SUPERVISORS, with_registry("kept", url="http://10.6.6.6:8081"))
    place = "/inputFormat/valueFormat/avroBytesDecoder/headers/X-Key"
    assert versions("kept") == [{place: CANARY}, {place: CANARY}, {}]


def test_row_6_keys_are_rotated(owner: Client, settings: Any) -> None:
    """Row 6 of the security checklist: keys are rotated."""
    login = {**LOGIN, "sasl.password": CANARY}
    for count in (1, 2):
        spec = with_properties("turning", **login)
        spec["ioConfig"]["taskCount"] = count
        post(owner, SUPERVISORS, spec)
    post(owner, SUPERVISORS + "turning/scale/", {"taskCount": 3})
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another key, and long enough to be taken for one of them"
    with pytest.raises(SecretsLost, match="HEADGATE_OLD_SECRET_KEYS"):
        versions("turning")
    with pytest.raises(CommandError, match="2 can't be opened"):
        call_command("rotate_secrets", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = [old]
    assert versions("turning") == [{"sasl.password": CANARY}] * 3
    said = StringIO()
    call_command("rotate_secrets", stdout=said)
    assert said.getvalue() == "2 sealed with the present key.\n"
    settings.SECRET_KEY_FALLBACKS = []
    assert versions("turning") == [{"sasl.password": CANARY}] * 3
    texts = list(
        SpecVersion.objects.filter(supervisor_id="turning").order_by("version").values_list("secrets", flat=True)
    )
    assert texts[0] != texts[1] == texts[2]  # a version that only scales has the same secrets as the one before


def test_secrets_that_nobody_can_open_leave_a_supervisor_changeable(owner: Client, settings: Any) -> None:
    login = {**LOGIN, "sasl.password": CANARY}
    post(owner, SUPERVISORS, with_properties("lost", **login))
    settings.SECRET_KEY = "another key, and long enough to be taken for one of them"
    assert _faults(post(owner, SUPERVISORS, with_properties("lost", **LOGIN)))
    assert post(owner, SUPERVISORS, with_properties("lost", **login)).status_code in (200, 201)


def test_sealing_nothing_gives_nothing() -> None:
    assert secrets.seal({}) == "" and secrets.unseal("") == {}
    assert CANARY not in seal({"a": CANARY})
    assert EnvironmentVariable(type="environment", variable="A").model_dump() == {
        "type": "environment",
        "variable": "A",
    }


def test_row_16_a_spec_sets_no_option_of_spark(owner: Client) -> None:
    """Row 16 of the security checklist: a spec sets no option of Spark."""
    plain = post(owner, TASKS, spec_for("flights")).json()["id"]
    odd = {"spark.driver.extraJavaOptions": CANARY, "spark.jars": CANARY, "sparkConf": {"spark.submit.pyFiles": CANARY}}
    other = post(owner, TASKS, {**spec_for("flights"), "context": odd}).json()["id"]
    commands = [_spark_command(Task.objects.get(pk=task)) for task in (plain, other)]
    assert [word.replace(other, plain) for word in commands[1]] == commands[0]
