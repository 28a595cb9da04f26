"""Profiles: the sites that a person works with, and where the token of each is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate.cli.errors import CommandFailed

SERVICE = "headgate"
_NAME = re.compile(r"[\w.-]{1,63}")


@dataclass(frozen=True)
class Profile:
    """One site."""

    url: str
    token: str = ""  # empty where a keyring has it
    team: str = ""  # the one that new objects belong to
    keyring: bool = False

    def __repr__(self) -> str:
        return f"Profile({self.url!r})"


@dataclass(frozen=True)
class Login:
    """What a command works with."""

    url: str
    token: str
    team: str = ""

    def __repr__(self) -> str:
        return f"Login({self.url!r})"


def profiles_file(environment: Mapping[str, str] | None = None) -> Path:
    """``HEADGATE_CONFIG``, else ``headgate/profiles.json`` in the folder for configuration."""
    environment = os.environ if environment is None else environment
    if "HEADGATE_CONFIG" in environment:
        return Path(environment["HEADGATE_CONFIG"]).expanduser()
    base = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "headgate" / "profiles.json"


def read_profiles(path: Path) -> dict[str, Profile]:
    """Raises ``CommandFailed`` for a file that is not ours."""
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {name: Profile(**fields) for name, fields in document.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CommandFailed(f"{path} holds no profiles: {error}. Correct it, or delete it and log in again.") from None


def save_profile(path: Path, name: str, profile: Profile, token: str) -> None:
    """Add it, or replace the one of this name. Nobody else can read the file. Raises ``CommandFailed``."""
    if _NAME.fullmatch(name) is None:
        raise CommandFailed(f"The profile's name is {name!r}. Use up to 63 letters, digits, '.', '-' and '_'.")
    if profile.keyring:
        with _open_keyring() as keyring:
            keyring.set_password(SERVICE, f"{name}@{profile.url}", token)
    else:
        profile = Profile(profile.url, token, profile.team)
    known = {**read_profiles(path), name: profile}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({n: asdict(p) for n, p in known.items()}, file, indent=2)
    new.replace(path)


def login_of(name: str, url: str, team: str, environment: Mapping[str, str], known: Mapping[str, Profile]) -> Login:
    """Options, then the environment, then the profile. A stored token goes only to the site that it is for.

    Raises ``CommandFailed``.
    """
    named = name or environment.get("HEADGATE_PROFILE", "")
    if named and named not in known:
        raise CommandFailed(f"There is no profile {named!r}. Create it with: headgate login URL --profile {named}")
    profile = known.get(named or "default")
    given_url = url or ("" if name else environment.get("HEADGATE_URL", ""))
    address = (given_url or (profile.url if profile else "")).rstrip("/")
    if not address:
        raise CommandFailed(
            "There is no site. Log in with: headgate login URL, or set HEADGATE_URL and HEADGATE_TOKEN."
        )
    token = environment.get("HEADGATE_TOKEN", "")
    if profile is not None and address == profile.url and (name or not token):
        token = _stored_token(named or "default", profile)
    if not token:
        raise CommandFailed(
            f"There is no token for {address}. Log in with: headgate login {address}, or set HEADGATE_TOKEN."
        )
    return Login(address, token, team or (profile.team if profile and address == profile.url else ""))


def _stored_token(name: str, profile: Profile) -> str:
    if not profile.keyring:
        return profile.token
    with _open_keyring() as keyring:
        return str(keyring.get_password(SERVICE, f"{name}@{profile.url}") or "")


@contextmanager
def _open_keyring() -> Iterator[Any]:
    """The package keyring. Its refusals (no keyring, a locked one) are raised as ``CommandFailed``."""
    try:
        import keyring.errors  # not at the top: it is optional
    except ImportError:
        raise CommandFailed(
            "The package keyring is not installed. Install it with: pip install 'headgate[keyring]'"
        ) from None
    try:
        yield keyring
    except keyring.errors.KeyringError as error:
        raise CommandFailed(f"The keyring failed: {error} Without --keyring, the token is kept in a file.") from None
