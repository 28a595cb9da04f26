"""What all commands share: the options of the program, the site, and errors as text with an exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import httpx2
import typer

from headgate.cli.errors import CommandFailed
from headgate.cli.output import Form, plain
from headgate.cli.profiles import Login, login_of, profiles_file, read_profiles
from headgate.client import Client, ClientError, NotLoggedIn

Output = Annotated[Form, typer.Option("-o", "--output", help="How to print it.")]
Supervisor = Annotated[str, typer.Argument(metavar="SUPERVISOR", show_default=False)]


@dataclass(frozen=True)
class Options:
    """Those before the command."""

    profile: str = ""
    url: str = ""
    team: str = ""


options = Options()


def set_options(given: Options) -> None:
    """For the command that follows."""
    global options
    options = given


def transport() -> httpx2.BaseTransport | None:
    """How requests travel; None: over the network."""
    return None


def login() -> Login:
    """The site that the options, the environment or the profile name. Raises ``CommandFailed``."""
    return login_of(options.profile, options.url, options.team, os.environ, read_profiles(profiles_file()))


@contextmanager
def site() -> Iterator[Client]:
    """Its client."""
    found = login()
    with Client(found.url, found.token, transport=transport()) as client:
        yield client


def message_of(error: ClientError | CommandFailed) -> str:
    """What is wrong, where, and what to do."""
    lines = [str(error)]
    if isinstance(error, ClientError):
        lines += [f"  {fault}" for fault in error.faults]
    if isinstance(error, NotLoggedIn):
        lines.append("Log in again with: headgate login URL")
    return plain("\n".join(lines))
