"""Rows 6, 8 and 9 of the security checklist: secrets of specs are in no answer, page, file, row or process.

One task runs and reads, one supervisor meets a broker that refuses; both have every secret that a spec can have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from controlplane.connections.client_properties import MAX_BYTES
from tests.support.browsing import browsing
from tests.support.certificates import authority
from tests.support.house import House
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

CANARY = "canary-7f3a"
ROOT = authority()
CHUNK = MAX_BYTES


def key_with_a_canary() -> tuple[str, str]:
    """A private key as PEM, and a part of it that is nowhere else."""
    text = ROOT.key_pem()
    return text, text.splitlines()[1][10:50]


KEY, KEY_PART = key_with_a_canary()
MARKS = [CANARY.encode(), KEY_PART.encode()]
KEYS = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.certificate.chain": ROOT.pem,
    "ssl.keystore.key": KEY,
    "ssl.key.password": f"{CANARY}-key",
    "ssl.keystore.password": f"{CANARY}-keystore",
    "ssl.truststore.password": f"{CANARY}-truststore",
}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{MODULE} required username="u" password="{CANARY}-jaas";'}


def tells(data: bytes) -> bool:
    return any(mark in data for mark in MARKS)


def files_that_tell(folder: Path) -> list[str]:
    """Every file below the folder that holds a canary: data of the services, logs, scratch files."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and any(map(tells, _pieces(path)))]


def _pieces(path: Path) -> Iterator[bytes]:
    """The file in pieces that overlap by more than a canary is long."""
    try:
        with path.open("rb") as file:
            rest = b""
            while piece := file.read(CHUNK):
                yield rest + piece
                rest = piece[-100:]
    except OSError:
        return  # gone meanwhile


def processes_that_tell() -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            told = " ".join([*process.cmdline(), *map(str, process.environ().items())])
        except psutil.Error:
            continue
        if tells(told.encode()):
            found.append(f"{process.pid} {process.name()}")
    return found


def rows_that_tell(house: House) -> list[str]:
    tables = house.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    texts = {str(t): house.sql(f'SELECT t::text FROM "{t}" t') for (t,) in tables}
    return [name for name, rows in texts.items() if tells(repr(rows).encode())]


def answers_that_tell(house: House, task: str, supervisor: str) -> list[str]:
    """Every address of both APIs, and every page, that shows something of them. The broker refuses the supervisor."""
    with browsing(house) as browser:
        found = []
        for address in _addresses(task, supervisor):
            answer = browser.get(address)
            expected = 503 if address.endswith("share-group/config/") and "/api/" in address else 200
            assert answer.status_code == expected, (address, answer.text[:300])
            if tells(answer.content):
                found.append(address)
    return found


def _addresses(task: str, supervisor: str) -> list[str]:
    api, druid = "/api/v1", "/druid/indexer/v1"
    shown = ("", "versions/", "stats/", "lag/", "share-group/", "share-group/config/")
    return [
        *(f"{api}/tasks/{task}/{part}" for part in ("", "report/", "log/")),
        *(f"{api}/supervisors/{supervisor}/{part}" for part in shown),
        *(f"{api}/datasources/{supervisor}/events/", f"{api}/teams/demo/audit/", "/audit/"),
        *(f"{api}/{part}/" for part in ("tasks", "supervisors", "datasources")),
        *(f"{druid}/task/{task}{part}" for part in ("", "/status", "/reports", "/log")),
        *(f"{druid}/supervisor/{supervisor}{part}" for part in ("", "/status", "/stats", "/history")),
        *(f"{druid}/{part}" for part in ("tasks", "supervisor?full", "supervisor?state=true", "supervisor/history")),
        *(f"/supervisors/{supervisor}/{part}/" for part in ("lag", "share-group", "share-group/config")),
        f"/datasources/{supervisor}/events/",
        *(f"/tasks/{task}/", f"/supervisors/{supervisor}/", f"/supervisors/{supervisor}/spec/", "/tasks/"),
        *(f"/supervisors/-/new/?from={supervisor}", f"/tasks/-/new/?from={task}"),
    ]


@pytest.fixture(scope="module", autouse=True)
def _at_rest(house: House) -> Iterator[None]:
    """The task runs on from test to test."""
    yield
    house.rest()


@pytest.fixture(scope="module")
def told(house: House) -> dict[str, str]:
    """A task that reads with all these secrets, a task and a supervisor that the broker refuses: their ids."""
    topic = house.topic("canary", 1)
    house.produce(topic, numbered(0, 100))
    reading = {"bootstrap.servers": house.bootstrap, **KEYS, **JAAS}
    task = house.submit(house.spec(topic, consumerProperties=reading, idleConfig={"enabled": False}))
    refused = house.topic("refused", 1)
    spec = house.spec(refused, consumerProperties={**reading, "security.protocol": "SASL_PLAINTEXT"}, period="PT2S")
    spec["ioConfig"]["inputFormat"] = _with_registry()
    supervisor = house.supervise(spec)
    in_vain = house.submit({**spec, "ioConfig": {**spec["ioConfig"], "idleConfig": {"enabled": False}}})
    published(house, topic, 100)

    def complaint() -> bool:
        of_task = house.sql("SELECT 1 FROM tasks_task WHERE id = %s AND observation->>'error' <> ''", in_vain)
        errors = house.sql("SELECT recent_errors FROM supervisors_supervisor WHERE id = %s", supervisor)
        return bool(of_task) and any(e["stream"] for (some,) in errors for e in some)

    wait_for("the broker's refusals", complaint, 120, lambda: house.logs(refused))
    return {"task": task, "refused": in_vain, "supervisor": supervisor}


def _with_registry() -> dict[str, Any]:
    return {
        "type": "avro_stream",
        "avroBytesDecoder": {
            "type": "schema_registry",
            "url": "http://127.0.0.1:9",
            "config": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": f"u:{CANARY}-registry"},
            "headers": {"X-Key": f"{CANARY}-header"},
        },
    }


def test_row_6_no_answer_and_no_page_tells(house: House, told: dict[str, str]) -> None:
    """Row 6 of the security checklist: no answer and no page tells."""
    for task in (told["task"], told["refused"]):
        assert answers_that_tell(house, task, told["supervisor"]) == []


def test_row_6_no_row_tells(house: House, told: dict[str, str]) -> None:
    """Row 6 of the security checklist: no row tells."""
    assert rows_that_tell(house) == []


def test_row_8_no_file_tells(house: House, told: dict[str, str]) -> None:
    """Row 8 of the security checklist: no file tells."""
    assert (house.home.tasks / told["task"] / "spark.log").stat().st_size > 0
    assert files_that_tell(house.home.path) == []


def test_row_8_no_refusal_tells(house: House, told: dict[str, str]) -> None:
    """Row 8 of the security checklist: no refusal tells."""
    spec = house.spec(
        "x", consumerProperties={"bootstrap.servers": "x", **KEYS, **JAAS, "plugin.library.paths": CANARY}
    )
    spec["ioConfig"]["inputFormat"] = _with_registry()
    for path in ("/api/v1/tasks/", "/druid/indexer/v1/supervisor"):
        assert CANARY not in str(house.api("POST", path, spec, expect=400))


def test_row_9_no_process_tells(house: House, told: dict[str, str]) -> None:
    """Row 9 of the security checklist: no process tells."""
    pid = house.application_pid(told["task"])
    assert pid is not None, "the task runs on"
    application = psutil.Process(pid)
    assert "spark.eventLog.enabled=false" in application.cmdline()
    assert "spark.ui.enabled=false" in application.cmdline()
    assert "spark.authenticate=true" in application.cmdline()
    assert "spark.authenticate.secret" not in " ".join(application.cmdline())
    secret = {n for n in application.environ() if re.search("SECRET|PASSWORD|KEY|DATABASE_URL|REDIS", n)}
    assert {n for n in secret if not n.startswith("AWS_")} == set()
    assert processes_that_tell() == []


def test_no_process_of_an_application_speaks_to_the_database(house: House, told: dict[str, str]) -> None:
    """Row 12 of the security checklist: it has no login for it, and holds no connection to it or to the queue."""
    pid = house.application_pid(told["task"])
    assert pid is not None, "the task runs on"
    ports: set[int] = set()
    known = ""
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        try:
            ports |= {c.raddr.port for c in process.net_connections() if c.raddr}
            known += " ".join(process.environ().values())
        except psutil.Error:
            continue  # it has ended meanwhile
    assert house.kafka.port in ports, "what it is connected to can be seen"
    assert not ports & {house.postgres.port, house.valkey.port}
    assert house.postgres.password not in known
    assert f":{house.postgres.port}" not in known


def test_a_canary_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * (CHUNK - 5) + CANARY.encode())
    assert files_that_tell(tmp_path) == [str(tmp_path / "log")]
