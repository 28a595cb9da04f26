"""``manage.py doctor`` on a real store: what it finds, what it advises, and that it shows no secret."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from controlplane.operations.doctor import outside, processes
from controlplane.operations.doctor.configuration import check_settings
from controlplane.operations.doctor.findings import FAIL, OK, SKIPPED, WARN, Finding, run_one, run_side_by_side
from controlplane.operations.doctor.metadata_store import check_metadata_store, judge_server
from tests.support.django_cast import Cast

SECRET = "a-secret-of-twenty-letters-and-more-4711"


def examined() -> dict[str, list[dict[str, str]]]:
    """The findings by their check. Exit code 1 and ``ok`` say the same."""
    said = StringIO()
    try:
        call_command("doctor", "--json", stdout=said)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    document = json.loads(said.getvalue())
    assert code == (not document["ok"])
    findings: dict[str, list[dict[str, str]]] = {}
    for finding in document["findings"]:
        findings.setdefault(finding["check"], []).append(finding)
        assert finding["advice"] or finding["state"] in ("ok", "skipped")
    return findings


def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
    return port


def store_findings() -> dict[str, Finding]:
    return {finding.check: finding for finding in run_one("PostgreSQL", check_metadata_store)}


def states(findings: Iterable[Finding]) -> list[str]:
    """Of those that are shown."""
    return [finding.state for finding in run_one("", lambda: findings)]


@pytest.fixture
def deep_storage(tmp_path: Path, settings: Any) -> Path:
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    (tmp_path / "deep").mkdir()
    return tmp_path / "deep"


def test_everything_is_examined(cast: Cast, deep_storage: Path, settings: Any) -> None:
    """No worker, no beat and no web run here: these must be mended. The store and deep storage are well."""
    settings.SPARK_SECRET = settings.METRICS_TOKEN = SECRET
    settings.INTERNAL_URL = f"http://127.0.0.1:{closed_port()}"
    findings = examined()
    for name in ("workers", "beat", "web", "hosts"):
        assert [f["state"] for f in findings[name]] == ["fail"], findings[name]
    for name in ("recovery", "privileges", "migrations", "clock", "connections"):
        assert [f["state"] for f in findings[f"PostgreSQL {name}"]] == ["ok"], findings[f"PostgreSQL {name}"]
    assert findings["deep storage"][0]["state"] == "ok"
    assert "write, read, list, delete work" in findings["deep storage"][0]["found"]
    assert not [path for path in deep_storage.rglob("*") if path.is_file()]  # the probe is gone
    shown = json.dumps(findings)
    for secret in (SECRET, settings.SECRET_KEY, settings.DATABASES["default"]["PASSWORD"]):
        assert not secret or secret not in shown


def test_a_store_that_is_away_is_the_one_finding_of_it(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    port = closed_port()
    monkeypatch.setitem(connection.settings_dict, "PORT", port)
    findings = examined()
    [away] = findings["PostgreSQL"]
    assert away["state"] == "fail" and str(port) in away["found"]
    assert not [name for name in findings if name.startswith("PostgreSQL ")]
    assert [f["state"] for f in findings["hosts"] + findings["Kafka"]] == ["skipped", "skipped"]


def test_migrations_that_are_missing_or_of_a_newer_version(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'query'")
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('lag', '0099_later', now())")
    found = [f for f in run_one("PostgreSQL", check_metadata_store) if f.check == "PostgreSQL migrations"]
    assert [f.state for f in found] == [FAIL, FAIL]
    assert "lag.0099_later" in found[0].found and "newer version" in found[0].found
    assert "query.0001_initial" in found[1].found and "migrate" in found[1].advice


def test_commits_that_are_not_on_disk_when_they_are_answered(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    off = store_findings()["PostgreSQL durability"]
    assert off.state == FAIL and "synchronous_commit off" in off.found


def test_settings_that_contradict_each_other(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SECURE_SSL_REDIRECT, settings.PROXIES = True, 0
    settings.INTERNAL_URL = "http://elsewhere.internal:8000"
    settings.ORPHAN_GRACE = timedelta(hours=1)
    settings.DEBUG = True
    monkeypatch.setenv("HEADGATE_DEEP_STORAGES", "/typo")
    found = {finding.found: finding.state for finding in run_one("settings", check_settings)}
    for words in ("redirected for ever", "elsewhere.internal", "HEADGATE_ORPHAN_GRACE is shorter", "HEADGATE_DEBUG"):
        assert [state for text, state in found.items() if words in text] == [FAIL], (words, found)
    assert [state for text, state in found.items() if "HEADGATE_DEEP_STORAGES" in text] == [WARN]


def test_a_deep_storage_that_refuses(deep_storage: Path, settings: Any) -> None:
    settings.DEEP_STORAGE = "/proc/headgate"
    [finding] = run_one("deep storage", outside.check_deep_storage)
    assert finding.state == FAIL and "/proc/headgate" in finding.found and finding.advice


def test_mail_that_nobody_takes(settings: Any) -> None:
    settings.EMAIL_PORT = closed_port()
    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "127.0.0.1", "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD, settings.EMAIL_USE_TLS = "u", SECRET, False
    [finding] = run_one("mail", processes.check_mail)
    assert finding.state == FAIL and SECRET not in repr(finding)


def test_a_check_without_an_answer_holds_nobody_up() -> None:
    began = monotonic()

    def slowly() -> Iterator[Finding]:
        sleep(30)
        yield Finding(True, OK, "late")

    slow, quick = run_side_by_side({"slow": slowly, "quick": lambda: [Finding(True, OK, "here")]}, 0.5)
    assert (slow.check, slow.state, quick.check, quick.state) == ("slow", FAIL, "quick", OK) and "0.5 s" in slow.found
    assert monotonic() - began < 10


def test_jobs_are_not_judged_while_valkey_is_away(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    found = {f.check: f.state for f in run_one("workers", processes.check_jobs)}
    assert found == {"workers": SKIPPED, "beat": SKIPPED}


WELL = SimpleNamespace(
    **{"version": "18.1", "role": "headgate", "in_recovery": False, "read_only": False, "may_create": True},
    **{"foreign_tables": 0, "most": 200, "used": 20, "off": None, "commit": "on", "waits_for": "", "standbys": 0},
)


@pytest.mark.parametrize(
    ("said", "part", "shown"),
    [
        ({}, "durability", [OK]),
        ({"waits_for": "one", "commit": "local"}, "durability", [WARN]),
        ({"waits_for": "one"}, "durability", [FAIL]),
        ({"waits_for": "one", "standbys": 1}, "durability", [OK]),
        ({"standbys": 1}, "durability", [WARN]),
        ({"version": "13.2"}, "", [FAIL]),
        ({"version": "17.5"}, "", [WARN]),
        ({"in_recovery": True}, "recovery", [FAIL]),
        ({"may_create": False, "foreign_tables": 3}, "privileges", [FAIL, FAIL]),
        ({"used": 190}, "connections", [FAIL]),
        ({"most": 50}, "connections", [WARN]),
        ({"difference": timedelta(seconds=2)}, "clock", [WARN]),
        ({"difference": timedelta(seconds=9)}, "clock", [FAIL]),
    ],
)
def test_what_a_server_says_of_itself(said: dict[str, Any], part: str, shown: list[str]) -> None:
    facts = SimpleNamespace(**{**vars(WELL), **said})
    found = run_one("PostgreSQL", lambda: judge_server(facts, said.get("difference", timedelta(0))))
    assert [f.state for f in found if f.check == f"PostgreSQL {part}".strip()] == shown
    assert {f.state for f in found if f.check != f"PostgreSQL {part}".strip()} == {OK}


def test_workers_by_what_they_answer() -> None:
    judged = states(processes.judge_workers(["celery", "slow"], {"w1": ["celery"]}, {"celery": 5_000}))
    assert judged == [FAIL, WARN]  # nobody consumes slow; and a long queue
    both = {"w1": ["celery"], "w2": ["celery"]}
    [good] = run_one("workers", lambda: processes.judge_workers(["celery"], both, {"celery": 3}))
    assert good.state == OK and "w1, w2" in good.found
    [none] = run_one("workers", lambda: processes.judge_workers(["celery"], {}, {}))
    assert (none.state, none.advice) == (FAIL, "Start a worker: docker/entrypoint.sh worker.")


def test_beat_by_the_jobs_that_come() -> None:
    before, after = {"w": {"total": {"watch": 7}}}, {"w": {"total": {"watch": 9, "run": 1}}}
    assert states(processes.judge_beat(before, after, 0)) == [OK]
    [none] = run_one("beat", lambda: processes.judge_beat(before, before, 0))
    assert (none.state, none.advice) == (FAIL, "Start beat: docker/entrypoint.sh beat.")
    assert states(processes.judge_beat({}, {}, 3)) == [OK]  # jobs come, but nobody does them
    assert states(processes.judge_beat(before, {}, 0)) == [FAIL]  # the worker has gone meanwhile


def test_hosts_by_their_leases(settings: Any) -> None:
    now = datetime.now(UTC)
    old = now - 2 * settings.TASK_HEARTBEAT_TIMEOUT
    [live] = run_one("hosts", lambda: processes.judge_hosts([("a", now), ("b", old)], now))
    assert (live.state, live.found) == (OK, "with a worker: a; without one: b")
    assert states(processes.judge_hosts([("b", old)], now)) == [FAIL]


def test_a_master_of_another_version_and_one_without_workers() -> None:
    page = '<span class="version" style="margin-right: 15px;">4.0.1</span>'
    document = {"status": "ALIVE", "aliveworkers": 2}
    assert states(outside.judge_master("http://m:8080", document, page, "4.0.3")) == [OK]
    assert states(outside.judge_master("http://m:8080", document, page, "4.1.0")) == [FAIL]
    assert states(outside.judge_master("http://m:8080", {"aliveworkers": 0}, page, "4.0.1")) == [FAIL]
