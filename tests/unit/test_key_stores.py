"""Stores that are files, as Java makes them: the same texts come of each form, and what is wrong is named."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.errors import OptionError
from headgate.sharegroup.options import read_options
from headgate.sharegroup.properties import client_config
from ingestion.specs.kafka import keytool
from ingestion.specs.kafka.key_stores import StoreProblem, with_stores
from tests.support.certificates import as_jks, authority

CANARY = "canary-4711"
ROOT = authority()
ME = ROOT.signs("the signer", authority=True).signs("me")
KEYS = {"ssl.certificate.pem": ME.pem, "ssl.key.pem": ME.key_pem()}


def opened(data: bytes, store: str = "ssl.keystore", **more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return with_stores({f"{store}.location": "a", **given}, lambda name, place: data)


def problem(data: bytes, store: str = "ssl.keystore", **more: str) -> StoreProblem:
    with pytest.raises(StoreProblem) as caught:
        opened(data, store, **more)
    assert CANARY not in str(caught.value)
    return caught.value


@pytest.fixture(scope="module")
def jks() -> bytes:
    return ME.jks("store pass", "key pass")


@pytest.fixture
def run_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program in keytool's place, which runs the lines given and then keytool; gives the folder it runs in."""
    real = keytool._program()

    def put(lines: str) -> Path:
        program = tmp_path / "bin" / "keytool"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n{lines}\nexec {real} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return tmp_path

    return put


@pytest.mark.parametrize("kind", ["JKS", "jks", "PKCS12", ""])
def test_a_key_store_of_java_opens_under_whatever_type(jks: bytes, kind: str) -> None:
    given = {"ssl_keystore_type": kind} if kind else {}
    assert opened(jks, ssl_keystore_password="store pass", ssl_key_password="key pass", **given) == KEYS
    assert opened(ME.pkcs12("one"), ssl_keystore_password="one", **given) == KEYS


def test_a_key_has_the_stores_password_unless_another_is_given() -> None:
    password = "ä✓'$(id)\"\\ b"
    assert opened(ME.jks(password), ssl_keystore_password=password) == KEYS


def test_a_trust_store_opens_without_its_password_too() -> None:
    store = as_jks(ROOT.trust_store("one"), "one", "trusted")
    assert opened(store, "ssl.truststore", ssl_truststore_password="trusted") == {"ssl.ca.pem": ROOT.pem}
    assert opened(store, "ssl.truststore") == {"ssl.ca.pem": ROOT.pem}


def test_what_is_wrong_stands_at_the_property_that_is(jks: bytes) -> None:
    wrong = problem(jks, ssl_keystore_password=CANARY)
    assert (wrong.name, wrong.reason[:34]) == ("ssl.keystore.password", "the JKS store does not open: the p")
    for key_password in ({}, {"ssl_key_password": CANARY}):
        assert problem(jks, ssl_keystore_password="store pass", **key_password).name == "ssl.key.password"
    cut = problem(jks[:300], ssl_keystore_password="store pass")
    assert (cut.name, cut.reason) == (
        "ssl.keystore.location",
        "keytool can't read the JKS store: java.io.EOFException",
    )
    unwritable = problem(jks, ssl_keystore_password="store pass", ssl_key_password="✓")
    assert "keytool does not accept these characters in a key's password" in unwritable.reason


def test_a_store_that_does_not_say_which_key_is_meant_is_refused(tmp_path: Path) -> None:
    words = ["-genkeypair", "-keyalg", "EC", "-storetype", "JKS", "-keystore", str(tmp_path / "two.jks")]
    for name in ("one", "two"):
        of_it = ["-alias", name, "-dname", f"CN={name}", "-storepass", "pass phrase"]
        subprocess.run(
            [keytool._program(), *keytool._JAVA, *words, *of_it], check=True, capture_output=True, timeout=120
        )
    two = problem((tmp_path / "two.jks").read_bytes(), ssl_keystore_password="pass phrase")
    assert (two.name, two.reason[:31]) == ("ssl.keystore.location", "there are several private keys ")


def test_a_file_that_is_pem_text_wants_that_type() -> None:
    assert problem(ROOT.pem.encode(), "ssl.truststore").reason == "the file is PEM text: set ssl.truststore.type to PEM"


def test_without_keytool_the_line_that_converts_a_store_is_told(
    jks: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    lacking = problem(jks, ssl_keystore_password="never tried")
    assert lacking.name == "ssl.keystore.location"
    assert "keytool, which is not in JAVA_HOME/bin. Convert it: keytool -importkeystore" in lacking.reason
    monkeypatch.delenv("JAVA_HOME")  # and it is not remembered: Java may be there the next time
    assert problem(jks, ssl_keystore_password="never tried").name == "ssl.keystore.password"


def test_another_password_is_asked_for_once(run_by: Callable[[str], Path]) -> None:
    folder = run_by('echo "$@" >> "$JAVA_HOME/calls"; env >> "$JAVA_HOME/calls"')
    store = ME.jks("another pass")
    for _ in range(3):
        assert problem(store, ssl_keystore_password=CANARY).name == "ssl.keystore.password"
        assert opened(store, ssl_keystore_password="another pass") == KEYS
    lines = (folder / "calls").read_text().splitlines()
    commands = [line for line in lines if "-importkeystore" in line]
    assert len(commands) == 2
    assert not any(CANARY in line or "another pass" in line for line in commands)
    names = {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("-J")}
    assert names <= {"PATH", "HOME", "JAVA_HOME", "LC_ALL", "PWD", "_", "SOURCE_PASSWORD", "TARGET_PASSWORD"}


def test_nobody_else_may_read_what_is_converted_and_nothing_stays(run_by: Callable[[str], Path]) -> None:
    looks = 'ls -ld "$a" "$(dirname "$a")" > "$JAVA_HOME/modes"; echo "$a" > "$JAVA_HOME/place"'
    folder = run_by(f'for a in "$@"; do [ "$before" = -srckeystore ] && {{ {looks}; }}; before=$a; done')
    assert opened(ME.jks("private pass"), ssl_keystore_password="private pass") == KEYS
    modes = {line.split()[0][:10] for line in (folder / "modes").read_text().splitlines()}
    assert modes == {"-rw-------", "drwx------"}
    assert not Path((folder / "place").read_text().strip()).parent.exists()


def test_the_spark_connector_reads_them_where_its_driver_is(jks: bytes, tmp_path: Path) -> None:
    (tmp_path / "key.jks").write_bytes(jks)
    store = {"location": str(tmp_path / "key.jks"), "password": "store pass"}
    given = {"kafka.bootstrap.servers": "k:1", "subscribe": "t", "shareGroupId": "g", "checkpointLocation": "/c"}
    given |= {f"kafka.ssl.keystore.{name}": value for name, value in store.items()}
    config = client_config(read_options({**given, "kafka.ssl.key.password": "key pass"}))
    assert {name: value for name, value in config.items() if name.startswith("ssl.")} == KEYS
    with pytest.raises(OptionError, match=r"kafka\.ssl\.keystore\.location names no file that can be read"):
        client_config(read_options({**given, "kafka.ssl.keystore.location": str(tmp_path / "none")}))
    with pytest.raises(OptionError, match=r"ssl\.key\.password: neither it nor the store's password"):
        client_config(read_options({**given, "kafka.ssl.key.password": CANARY}))
