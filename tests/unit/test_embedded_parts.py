"""The embedded stack's pure parts: versions, ports, files, waiting, states."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from controlplane.common.applications import running_applications, stop_applications
from controlplane.common.process_identity import Identity, stop_identity
from controlplane.embedded import prerequisites
from controlplane.embedded.errors import Cancelled, HomeRefused, ServiceFailed, tail
from controlplane.embedded.files import read_json, write_json
from controlplane.embedded.home import Home
from controlplane.embedded.kafka import new_cluster_id
from controlplane.embedded.kafka_jars import OLDER, VERSION, known_hashes, wrong_jars
from controlplane.embedded.ports import PortBook, choose_port, is_free
from controlplane.embedded.processes import Child, run_to_end
from controlplane.embedded.state import ServiceState, StackState
from controlplane.embedded.waiting import poll_until
from controlplane.embedded.watched_service import back_off_s


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("command not found", None),
    ],
)
def test_java_versions(text: str, version: int | None) -> None:
    assert prerequisites.parse_version(text) == version


def fake_java(folder: Path, script: str) -> None:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
        ("exit 1", "does not run"),
        (None, "there is no java"),
    ],
)
def test_missing_or_old_java_is_one_sentence_with_a_command(
    script: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    if script is not None:
        fake_java(tmp_path, script)
    problem = prerequisites.problem()
    assert problem is not None
    assert words in problem
    assert problem.endswith("sudo apt-get install openjdk-17-jre-headless")
    assert "\n" not in problem


def test_java_home_wins_as_it_does_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = prerequisites.problem()
    assert problem is not None
    assert f"{tmp_path}/bin/java (chosen by JAVA_HOME) does not run" in problem
    assert "unset JAVA_HOME" in problem


def test_new_java_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_java(tmp_path, "echo 'openjdk version \"21.0.1\"' >&2")
    assert prerequisites.problem() is None


def listen(address: str = "127.0.0.1") -> socket.socket:
    server = socket.socket()
    server.bind((address, 0))
    server.listen()
    return server


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_busy_port_is_passed_over(address: str) -> None:
    with listen(address) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        assert choose_port(port) != port


def test_the_preferred_port_is_taken_when_free_and_not_reserved() -> None:
    free = choose_port(None)
    assert choose_port(free) == free
    assert choose_port(free, taken={free}) != free


def test_ports_of_two_homes_differ_before_anybody_listens(tmp_path: Path) -> None:
    first = PortBook(tmp_path / "one.json").assign("kafka")
    assert PortBook(tmp_path / "two.json").assign("kafka", preferred=first) != first


def test_ports_are_told_while_the_services_answer(tmp_path: Path) -> None:
    """Who reads the file too early finds none, rather than a port that is another stack's by now."""
    file = tmp_path / "ports.json"
    write_json(file, {"kafka": (before := choose_port(None))})  # of an earlier version
    book = PortBook(file)
    book.withdraw()
    assert book.assign("kafka") == before and not file.exists()
    book.announce()
    assert read_json(file) == {"kafka": before}
    book.withdraw()
    assert PortBook(file).assign("kafka") == before and not file.exists()


def test_the_port_book_keeps_a_port_until_it_is_busy(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    first = book.assign("web")
    assert PortBook(tmp_path / "ports.json").assign("web", preferred=first + 1) == first
    with socket.socket() as other:
        other.bind(("127.0.0.1", first))
        other.listen()
        second = book.assign("web")
    assert second != first
    assert book.assign("web") == second
    assert book.assign("kafka", preferred=second) != second


def test_json_files_are_private_and_survive_damage(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.json"
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{half")
    assert read_json(path) == {}
    assert read_json(tmp_path / "missing") == {}


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    first = home.secret("password")
    assert len(first) >= 32
    assert Home(tmp_path / "home").secret("password") == first
    assert home.secret("other") != first
    assert stat.S_IMODE((home.path / "secrets.json").stat().st_mode) == 0o600


def test_a_folder_with_other_files_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("…")
    with pytest.raises(HomeRefused):
        Home(tmp_path).create()
    with pytest.raises(HomeRefused):
        Home(tmp_path).remove()
    assert precious.read_text() == "…"


def test_the_folder_outside_is_used_only_if_it_is_ours(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.outside.parent == Path(tempfile.gettempdir())
    assert Home("/srv/headgate").outside.parent == Path("/var/lib")
    home.outside.mkdir()
    try:
        (home.outside / "somebody-elses").touch()
        with pytest.raises(HomeRefused):
            home.create_outside()
        home.remove()
        assert home.outside.exists()
        (home.outside / "somebody-elses").unlink()
        assert home.create_outside() == home.outside
        home.remove()
        assert not home.outside.exists()
    finally:
        shutil.rmtree(home.outside, ignore_errors=True)


def test_removing_a_home_keeps_downloads(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (home.path / "cache").mkdir(parents=True)
    (home.path / "cache" / "big.jar").write_text("jar")
    home.create()
    home.secret("password")
    home.remove()
    assert [entry.name for entry in home.path.iterdir()] == ["cache"]
    home.create()  # and it can be used again


def test_polling_ends_with_the_answer_the_deadline_or_a_stop() -> None:
    answers = iter(["", "", "yes"])
    assert poll_until(lambda: next(answers), timeout_s=5, interval_s=0.001) == "yes"
    with pytest.raises(TimeoutError):
        poll_until(lambda: False, timeout_s=0.01, interval_s=0.001)
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        poll_until(lambda: False, timeout_s=5, cancel=cancel)


def test_back_off_doubles_up_to_half_a_minute() -> None:
    assert [back_off_s(crashes) for crashes in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]


def sleeper(log: Path, script: str = "import time; time.sleep(600)") -> Child:
    return Child([sys.executable, "-c", script], log)


def test_a_process_is_known_by_pid_and_start_time(tmp_path: Path) -> None:
    child = sleeper(tmp_path / "log")
    try:
        assert Identity.of(child.pid) == child.identity
        assert child.identity.find() is not None
        stranger = Identity(child.pid, child.identity.create_time - 3600)
        assert stranger.find() is None
        assert stop_identity(stranger) is False
        assert child.running
    finally:
        child.kill()
    assert child.identity.find() is None


GRANDCHILD = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid, flush=True)
time.sleep(600)
"""


def grandchild_of(child: Child) -> Identity:
    return Identity.of(int(poll_until(child.output, timeout_s=20)))


def test_the_group_of_a_dead_leader_is_cleared(tmp_path: Path) -> None:
    child = sleeper(tmp_path / "log", GRANDCHILD)
    grandchild = grandchild_of(child)
    os.kill(child.pid, 9)
    poll_until(lambda: not child.running, timeout_s=10)
    assert grandchild.find() is not None
    assert stop_identity(child.identity) is True
    poll_until(lambda: grandchild.find() is None, timeout_s=10)


def test_a_child_that_ignores_the_stop_signal_is_killed_with_its_group(tmp_path: Path) -> None:
    script = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{GRANDCHILD}"
    child = sleeper(tmp_path / "log", script)
    grandchild = grandchild_of(child)
    assert child.stop(((signal.SIGTERM, 0.2),)) == -9
    poll_until(lambda: grandchild.find() is None, timeout_s=10)


def test_run_to_end_gives_the_exit_code_or_kills(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run_to_end([sys.executable, "-c", "print('hello'); raise SystemExit(7)"], log, timeout_s=20) == 7
    assert tail(log) == ["hello"]
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        run_to_end([sys.executable, "-c", "import time; time.sleep(600)"], log, timeout_s=0.2)
    assert time.monotonic() - started < 20


def test_spark_applications_are_stopped_only_if_they_are_still_the_same_process(tmp_path: Path) -> None:
    application, other = sleeper(tmp_path / "log"), sleeper(tmp_path / "log")
    write_json(tmp_path / "task-1" / "pid", {"pid": application.pid, "create_time": application.identity.create_time})
    write_json(tmp_path / "task-2" / "pid", {"pid": other.pid, "create_time": other.identity.create_time - 3600})
    (tmp_path / "task-3").mkdir()
    (tmp_path / "task-3" / "pid").write_text("not json")
    try:
        assert [task for task, _ in running_applications(tmp_path)] == ["task-1"]
        assert stop_applications(tmp_path, 10.0) == ["task-1"]
        assert not application.running
        assert other.running
    finally:
        other.kill()


def test_a_failed_service_names_its_log_and_quotes_it(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    message = str(ServiceFailed("kafka", "did not answer", log))
    assert str(log) in message
    assert "line 99" in message
    assert "line 80" not in message


def test_the_state_is_read_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert StackState.read(path) == StackState()
    state = StackState(
        phase="running",
        launcher=Identity.of(os.getpid()),
        services=(ServiceState("web", "running", Identity(1, 2.5), 8000, 3, "/logs/web.log"), ServiceState("beat")),
    )
    state.write(path)
    assert StackState.read(path) == state
    path.write_text('{"services": 5}')
    assert StackState.read(path) == StackState()


def test_children_are_orphans_only_without_their_launcher() -> None:
    web, beat = (
        ServiceState("web", process=Identity(10**7, 1.0)),
        ServiceState("beat", process=Identity(10**7 + 1, 1.0)),
    )
    me = Identity.of(os.getpid())
    assert StackState(launcher=me, services=(web, beat)).orphans() == []
    assert StackState(launcher=Identity(me.pid, 1.0), services=(web, beat)).orphans() == [beat, web]
    assert not StackState(phase="running", launcher=me, services=(web,)).all_run


@pytest.mark.parametrize("version", [VERSION, *OLDER])
def test_jars_are_checked_against_known_hashes(tmp_path: Path, version: str) -> None:
    names = list(known_hashes(version))
    assert len(names) > 40
    assert f"kafka_2.13-{version}.jar" in names
    (tmp_path / names[0]).write_bytes(b"something else")
    assert wrong_jars(tmp_path, version) == names


def test_cluster_ids_look_like_kafkas_own() -> None:
    ids = {new_cluster_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(identifier) == 22 and not identifier.startswith("-") for identifier in ids)


def test_the_launcher_needs_no_django() -> None:
    code = "import sys, controlplane.embedded.__main__; print(sorted(m for m in sys.modules if m.startswith('django')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
