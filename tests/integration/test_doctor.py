"""``manage.py doctor`` on a real store: what it finds, what it advises, and that it shows no secret."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from controlplane.operations.doctor import metadata_store, outside, processes
from controlplane.operations.doctor.configuration import check_settings
from controlplane.operations.doctor.findings import Check, Finding, State, ok, run_side_by_side
from controlplane.operations.doctor.metadata_store import check_metadata_store
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


def states(findings: Iterator[Finding]) -> dict[str, State]:
    return {finding.check: finding.state for finding in findings}


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
    found = [f for f in check_metadata_store() if f.check == "PostgreSQL migrations"]
    assert [f.state for f in found] == [State.FAIL, State.FAIL]
    assert "lag.0099_later" in found[0].found and "newer version" in found[0].found
    assert "query.0001_initial" in found[1].found and "migrate" in found[1].advice


def test_commits_that_are_not_on_disk_when_they_are_answered(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    assert states(check_metadata_store())["PostgreSQL durability"] is State.FAIL


def test_settings_that_contradict_each_other(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SECURE_SSL_REDIRECT, settings.PROXIES = True, 0
    settings.INTERNAL_URL = "http://elsewhere.internal:8000"
    settings.ORPHAN_GRACE = timedelta(hours=1)
    settings.DEBUG = True
    monkeypatch.setenv("HEADGATE_DEEP_STORAGES", "/typo")
    found = {finding.found: finding.state for finding in check_settings()}
    for words in ("redirected for ever", "elsewhere.internal", "HEADGATE_ORPHAN_GRACE is shorter", "HEADGATE_DEBUG"):
        assert [state for text, state in found.items() if words in text] == [State.FAIL], (words, found)
    assert [state for text, state in found.items() if "HEADGATE_DEEP_STORAGES" in text] == [State.WARN]


def test_a_deep_storage_that_refuses(deep_storage: Path, settings: Any) -> None:
    settings.DEEP_STORAGE = "/proc/headgate"
    [finding] = outside.check_deep_storage()
    assert finding.state is State.FAIL and "/proc/headgate" in finding.found and finding.advice


def test_mail_that_nobody_takes(settings: Any) -> None:
    settings.EMAIL_PORT = closed_port()
    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "127.0.0.1", "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD, settings.EMAIL_USE_TLS = "u", SECRET, False
    [finding] = processes.check_mail()
    assert finding.state is State.FAIL and SECRET not in repr(finding)


def test_a_check_without_an_answer_holds_nobody_up() -> None:
    began = monotonic()

    def slowly() -> Iterator[Finding]:
        sleep(30)
        yield ok("slow", "")

    checks = [Check("slow", slowly), Check("quick", lambda: [ok("quick", "here")])]
    slow, quick = run_side_by_side(checks, 0.5)
    assert (slow.state, quick.state) == (State.FAIL, State.OK) and "0.5 s" in slow.found
    assert monotonic() - began < 10


def test_jobs_are_not_judged_while_valkey_is_away(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    assert {f.check: f.state for f in processes.check_jobs()} == {"workers": State.SKIPPED, "beat": State.SKIPPED}


@pytest.mark.parametrize(
    ("commit", "names", "state"), [("local", "one", State.WARN), ("on", "one", State.FAIL), ("on", "", State.OK)]
)
def test_standbys_that_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, db: None, commit: str, names: str, state: State
) -> None:
    said = {"synchronous_commit": commit, "synchronous_standby_names": names, "fsync": "on", "full_page_writes": "on"}
    asked = metadata_store._setting
    monkeypatch.setattr(metadata_store, "_setting", lambda name: said[name] if name in said else asked(name))
    assert states(check_metadata_store())["PostgreSQL durability"] is state


def test_workers_by_what_they_answer() -> None:
    judged = [f.state for f in processes.judge_workers(["celery", "slow"], {"w1": ["celery"]}, {"celery": 5_000})]
    assert judged == [State.FAIL, State.WARN]  # nobody consumes slow; and a long queue
    [good] = processes.judge_workers(["celery"], {"w1": ["celery"], "w2": ["celery"]}, {"celery": 3})
    assert good.state is State.OK and "w1, w2" in good.found
    assert [f.state for f in processes.judge_workers(["celery"], {}, {})] == [State.FAIL]


def test_beat_by_the_jobs_that_come() -> None:
    before, after = {"w": {"total": {"watch": 7}}}, {"w": {"total": {"watch": 9, "run": 1}}}
    assert processes.judge_beat(before, after, 0).state is State.OK
    assert processes.judge_beat(before, before, 0).state is State.FAIL
    assert processes.judge_beat({}, {}, 3).state is State.OK  # jobs come, but nobody does them
    assert processes.judge_beat(before, {}, 0).state is State.FAIL  # the worker has gone meanwhile


def test_hosts_by_their_leases(settings: Any) -> None:
    now = datetime.now(UTC)
    old = now - 2 * settings.TASK_HEARTBEAT_TIMEOUT
    assert processes.judge_hosts([("a", now), ("b", old)], now).found == "with a worker: a; without one: b"
    assert processes.judge_hosts([("b", old)], now).state is State.FAIL


def test_a_master_of_another_version_and_one_without_workers() -> None:
    page = '<span class="version" style="margin-right: 15px;">4.0.1</span>'
    document = {"status": "ALIVE", "aliveworkers": 2}
    assert outside.judge_master("http://m:8080", document, page, "4.0.3").state is State.OK
    assert outside.judge_master("http://m:8080", document, page, "4.1.0").state is State.FAIL
    assert outside.judge_master("http://m:8080", {"aliveworkers": 0}, page, "4.0.1").state is State.FAIL
