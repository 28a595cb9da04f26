"""JKS, Java's own form of key stores: ``keytool``, which comes with Java, makes PKCS12 of it.

Each file is converted once in a process, and so is a refusal kept: another password is another question. Passwords
reach the program by its environment and its input, never by its command line.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\xfe\xed\xfe\xed"
MANUAL_COMMAND = "keytool -importkeystore -srckeystore store.jks -destkeystore store.p12 -deststoretype PKCS12"
TIMEOUT_S = 60.0
MAX_CACHED = 64  # stores and refusals
MAX_KEYS = 64  # of one store, whose password is asked for one by one
# A small and quick Java, whose words are English.
_JAVA = ("-J-Xmx64m", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-XX:-UsePerfData", "-J-Duser.language=en")
_OF_KEY = ("Cannot recover key", "Too many failures")
_OF_STORE = ("password was incorrect",)


class StorePasswordWrong(ValueError):
    """The store does not open; the text holds no value."""


class KeyPasswordWrong(ValueError):
    """The store opens, and a key in it does not."""


class NotConverted(ValueError):
    """Nobody's password is at fault."""


@dataclass(frozen=True)
class Pkcs12:
    """A store that was made here, with the password that was made for it."""

    data: bytes
    password: bytes


_converted_stores: dict[bytes, Pkcs12 | ValueError] = {}
_lock = threading.Lock()  # two that ask for the same store start one Java


def convert_store(data: bytes, password: str, key_password: str = "") -> Pkcs12:
    """A JKS store as PKCS12; without a password, what is in it but keys. Blocks for about a second the first time.

    Raises ``StorePasswordWrong``, ``KeyPasswordWrong``, ``NotConverted``.
    """
    digest = _digest(data, password, key_password)
    outcome = _converted_stores.get(digest) or _convert_once(digest, data, password, key_password)
    if isinstance(outcome, ValueError):
        raise type(outcome)(*outcome.args)
    return outcome


def _digest(*parts: bytes | str) -> bytes:
    each = (hashlib.sha256(p if isinstance(p, bytes) else p.encode()).digest() for p in parts)
    return hashlib.sha256(b"".join(each)).digest()


def _convert_once(digest: bytes, data: bytes, password: str, key_password: str) -> Pkcs12 | ValueError:
    with _lock:
        if digest not in _converted_stores:
            answer = _convert(data, password, key_password)
            while len(_converted_stores) >= MAX_CACHED:
                del _converted_stores[next(iter(_converted_stores))]
            _converted_stores[digest] = answer
        return _converted_stores[digest]


def _convert(data: bytes, password: str, key_password: str) -> Pkcs12 | ValueError:
    """A store, or what is wrong with this one. What may be otherwise the next time is raised: ``NotConverted``."""
    target_password = secrets.token_urlsafe(24)
    program = _program()
    try:
        with tempfile.TemporaryDirectory(prefix="headgate-store-") as folder:  # nobody else may look into it
            source, target = Path(folder, "from.jks"), Path(folder, "to.p12")
            source.touch(mode=0o600)
            source.write_bytes(data)
            completed = _run(_command(program, source, target, bool(password)), password, target_password, key_password)
            return (
                _refusal(completed.stdout)
                if completed.returncode
                else Pkcs12(target.read_bytes(), target_password.encode())
            )
    except subprocess.TimeoutExpired:
        raise NotConverted(f"keytool did not convert the JKS store within {TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise NotConverted(
            f"the JKS store can't be converted: {error.strerror}. Convert it: {MANUAL_COMMAND}"
        ) from None


def _program() -> str:
    """Beside the Java that Spark takes: JAVA_HOME's, else the one on the PATH. Raises ``NotConverted``."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("keytool", path=os.path.join(home, "bin") if home else None)
    if path is None:
        where = "in JAVA_HOME/bin" if home else "on the PATH"
        raise NotConverted(
            f"Headgate reads a JKS store with Java's keytool, which is not {where}. Convert it: {MANUAL_COMMAND}"
        )
    return path


def _command(program: str, source: Path, target: Path, with_password: bool) -> list[str]:
    stores = ["-srckeystore", str(source), "-srcstoretype", "JKS", "-destkeystore", str(target)]
    source_options = ["-srcstorepass:env", "SOURCE_PASSWORD"] if with_password else []
    target_options = ["-deststoretype", "PKCS12", "-deststorepass:env", "TARGET_PASSWORD"]
    return [program, *_JAVA, "-importkeystore", "-noprompt", *stores, *source_options, *target_options]


def _run(
    command: list[str], password: str, target_password: str, key_password: str
) -> subprocess.CompletedProcess[bytes]:
    """It asks for the password of a key that the store's does not open. It reads one byte for each character."""
    try:
        key_passwords = f"{key_password}\n".encode("latin-1") * MAX_KEYS if key_password else b""
    except UnicodeEncodeError:
        raise NotConverted(
            f"keytool does not accept these characters in a key's password. Convert it: {MANUAL_COMMAND}"
        ) from None
    return subprocess.run(
        command,
        input=key_passwords if password else b"\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment({"SOURCE_PASSWORD": password, "TARGET_PASSWORD": target_password}),
        timeout=TIMEOUT_S,
        umask=0o077,
        check=False,
    )


def _environment(passwords: Mapping[str, str]) -> dict[str, str]:
    """Nothing else that this process has: neither its secrets nor what changes Java. Passwords are read as UTF-8."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    return {**inherited, "LC_ALL": "C.UTF-8", **passwords}


def _refusal(output: bytes) -> ValueError:
    text = output.decode(errors="replace")
    if any(words in text for words in _OF_KEY):
        return KeyPasswordWrong("neither it nor the store's password opens a key in the store")
    if any(words in text for words in _OF_STORE):
        return StorePasswordWrong("the JKS store does not open: the password is wrong, or the file was changed")
    why = re.search(r"keytool error: ([\w.$]+)", text)
    return NotConverted(f"keytool can't read the JKS store{': ' + why[1] if why else ''}")
