"""The command line without a site: files, secrets, profiles, logs, and when waiting ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest

from headgate.cli.errors import CommandFailed
from headgate.cli.log_tail import new_text
from headgate.cli.manifests import KINDS, read_manifests, without_secrets
from headgate.cli.output import Form, written
from headgate.cli.planning import diff_of
from headgate.cli.profiles import Profile, login_of, read_profiles, save_profile
from headgate.cli.waiting import Seen, judge_health, wait_for
from headgate.client import Unreachable

CONNECTION = """
kind: connection
team: web
name: orders
spec:
  kind: kafka
  properties:
    sasl.password: "${ENV:PASSWORD}"
    sasl.jaas: "user=a password=${ENV:PASSWORD} on=${ENV:HOST}"
    since: 2026-11-27
    on: no
"""
KEYRING = """
from keyring.errors import KeyringError

passwords = {}
refusal = ""

def _check():
    if refusal:
        raise KeyringError(refusal)

def get_password(service, name):
    _check()
    return passwords.get((service, name))

def set_password(service, name, password):
    _check()
    passwords[service, name] = password
"""
ENVIRONMENT = {"PASSWORD": "hush", "HOST": "h"}


# Files


def test_references_are_resolved_and_not_shown(tmp_path: Path) -> None:
    [manifest] = read_manifests([_file(tmp_path, CONNECTION)], ENVIRONMENT)
    properties = manifest.spec["properties"]
    assert properties["sasl.jaas"] == "user=a password=hush on=h"
    assert "hush" not in repr(manifest) and "hush" not in str(without_secrets(manifest))
    assert without_secrets(manifest)["properties"]["sasl.password"] == "(secret)"


def test_yaml_has_no_surprises(tmp_path: Path) -> None:
    [manifest] = read_manifests([_file(tmp_path, CONNECTION)], ENVIRONMENT)
    properties = manifest.spec["properties"]
    assert (properties["since"], properties["on"]) == ("2026-11-27", "no")
    [flag] = read_manifests([_file(tmp_path, "kind: team\nname: a\nspec: {x: true, y: 1, z: null}")], {})
    assert flag.spec == {"x": True, "y": 1, "z": None}


def test_documents_are_applied_in_the_order_of_kinds(tmp_path: Path) -> None:
    text = "---\n".join(f"kind: {kind}\nname: a\nspec: {{}}\n" for kind in reversed(KINDS) if kind != "supervisor")
    spec = '{"type": "kafka", "spec": {"dataSchema": {"dataSource": "a"}}}'
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.json").write_text(spec)
    (tmp_path / "notes.txt").write_text("not read")
    _file(tmp_path, f"---\n{text}---\n")
    assert [m.kind for m in read_manifests([tmp_path], {})] == list(KINDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CONNECTION.replace("PASSWORD", "ABSENT"), "ABSENT"),
        (CONNECTION + "kind: team\n", "twice"),
        (CONNECTION + "---" + CONNECTION, "also in"),
        (CONNECTION.replace("kind: connection", "kind: conection"), "conection"),
        (CONNECTION.replace("team:", "tema:"), "tema"),
        ("kind: team\nspec: {}\n", "name"),
        ("kind: team\nname: a\nspec: [1]\n", "spec"),
        ("kind: supervisor\nname: b\nspec: {dataSchema: {dataSource: a}}\n", "'a'"),
        ("- 1\n", "object"),
        ("a: [1\n", "neither YAML nor JSON"),
        ("!!python/object/apply:os.system ['true']\n", "neither YAML nor JSON"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CommandFailed, match=said) as caught:
        read_manifests([_file(tmp_path, text)], ENVIRONMENT)
    assert "a.yaml" in str(caught.value) and "hush" not in str(caught.value)


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed):
        read_manifests([tmp_path], {})
    with pytest.raises(CommandFailed, match="absent"):
        read_manifests([tmp_path / "absent.yaml"], {})


def _file(folder: Path, text: str) -> Path:
    path = folder / "a.yaml"
    path.write_text(text)
    return path


def test_a_diff() -> None:
    assert list(diff_of({"a": 1, "b": 2}, {"b": 2, "a": 1})) == []
    assert list(diff_of({"a": 1}, {"a": 2})) == ["-a: 1", "+a: 2"]


# Output


def test_a_terminal_gets_no_control_characters() -> None:
    rows = [{"name": "a\x1b[2J", "n": {"x": True}}, {"name": None, "n": None}]
    assert written(rows, Form.table, ("name", "n.x")) == "NAME   X\na�[2J  yes\n"
    assert "\x1b" not in written(rows[0], Form.yaml)


# Profiles


def test_a_stored_token_goes_to_its_own_site_only(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "profiles.json"
    save_profile(path, "default", Profile("https://a.example", team="web"), "token-a")
    save_profile(path, "staging", Profile("https://b.example"), "token-b")
    known = read_profiles(path)
    default = login_of("", "", "", {}, known)
    assert (default.url, default.token, default.team) == ("https://a.example", "token-a", "web")
    assert login_of("staging", "", "", {"HEADGATE_TOKEN": "env"}, known).token == "token-b"
    assert login_of("", "", "", {"HEADGATE_TOKEN": "env"}, known).token == "env"
    other = login_of("", "", "", {"HEADGATE_URL": "https://c.example/", "HEADGATE_TOKEN": "env"}, known)
    assert (other.url, other.token, other.team) == ("https://c.example", "env", "")
    with pytest.raises(CommandFailed, match="no token"):
        login_of("", "https://c.example", "", {}, known)
    with pytest.raises(CommandFailed, match="'nobody'"):
        login_of("nobody", "", "", {}, known)
    with pytest.raises(CommandFailed, match="HEADGATE_URL"):
        login_of("", "", "", {}, {})
    assert "token" not in f"{known} {default}"


@pytest.fixture
def keyring_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The part of the package keyring that is used; it holds passwords until ``refusal`` says why it does not.

    The package itself is an extra, and needs a desktop's service or a file that others can read.
    """
    folder = tmp_path / "packages" / "keyring"
    folder.mkdir(parents=True)
    (folder / "errors.py").write_text("class KeyringError(Exception):\n    pass\n")
    (folder / "__init__.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(folder.parent)
    yield importlib.import_module("keyring")
    for name in ("keyring", "keyring.errors"):
        del sys.modules[name]


def test_a_keyring_has_the_token_and_the_file_does_not(tmp_path: Path, keyring_package: ModuleType) -> None:
    path = tmp_path / "profiles.json"
    save_profile(path, "default", Profile("https://a.example", keyring=True), "token-a")
    assert "token-a" not in path.read_text()
    assert keyring_package.passwords == {("headgate", "default@https://a.example"): "token-a"}
    assert login_of("", "", "", {}, read_profiles(path)).token == "token-a"


def test_what_a_keyring_refuses_is_said_and_nothing_is_stored(tmp_path: Path, keyring_package: ModuleType) -> None:
    path = tmp_path / "profiles.json"
    save_profile(path, "default", Profile("https://a.example", keyring=True), "token-a")
    vars(keyring_package)["refusal"] = "No recommended backend was available."
    with pytest.raises(CommandFailed, match=r"No recommended backend was available\. Without --keyring"):
        save_profile(path, "other", Profile("https://b.example", keyring=True), "token-b")
    with pytest.raises(CommandFailed, match="The keyring failed"):
        login_of("", "", "", {}, read_profiles(path))
    assert list(read_profiles(path)) == ["default"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"nonsense": 1}}'])
def test_a_file_that_holds_no_profiles_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profiles.json"
    path.write_text(text)
    with pytest.raises(CommandFailed, match=r"profiles\.json"):
        read_profiles(path)


# Logs


@pytest.mark.parametrize(
    ("shown", "tail", "new"),
    [
        ("", "a\nb\n", "a\nb\n"),
        ("a\nb\n", "a\nb\n", ""),
        ("a\nb\n", "a\nb\nc\n", "c\n"),
        ("a\nb\nc\n", "b\nc\nd\n", "d\n"),  # the beginning was cut off
        ("a\na\na\n", "a\na\na\na\n", "a\n"),
        ("a\nb\n", "x\ny\n", "\n[lines are missing here]\nx\ny\n"),
    ],
)
def test_the_new_lines_of_a_log(shown: str, tail: str, new: str) -> None:
    assert new_text(shown, tail) == new


# Waiting


@pytest.mark.parametrize(
    ("kind", "code", "until", "expected"),
    [
        ("ok", "up_to_date", "healthy", (True, False)),
        ("ok", "up_to_date", "caught-up", (True, False)),
        ("waiting", "idle", "healthy", (True, False)),
        ("working", "starting", "healthy", (False, False)),
        ("ok", "completed", "caught-up", (True, False)),
        ("ok", "behind", "caught-up", (False, False)),
        ("failed", "failing", "healthy", (False, False)),
        ("waiting", "suspended", "healthy", (False, True)),
        ("waiting", "terminated", "caught-up", (False, True)),
    ],
)
def test_when_a_supervisor_is_waited_for(kind: str, code: str, until: str, expected: tuple[bool, bool]) -> None:
    seen = judge_health(kind, code, "text", until)
    assert (seen.done, seen.failed) == expected


def test_waiting_ends_in_time_and_outlives_a_site_that_is_away() -> None:
    answers: list[Seen | Exception] = [Unreachable("away"), Seen("not yet"), Seen("now", done=True)]

    def observe() -> Seen:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    clock = count()
    assert wait_for(observe, 100, lambda _: None, lambda: next(clock)).done
    late = wait_for(lambda: Seen("not yet"), 5, lambda _: None, lambda: next(clock))
    assert (late.done, late.text) == (False, "not yet")
