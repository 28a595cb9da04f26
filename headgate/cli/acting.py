"""Commands that change one supervisor, and the login."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from headgate.cli import context
from headgate.cli.errors import CommandFailed
from headgate.cli.output import Form, plain, written
from headgate.cli.profiles import Profile, profiles_file, save_profile
from headgate.cli.reading import user_name
from headgate.client import Client, Conflict

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def login(
    url: Annotated[str, typer.Argument(help="Such as https://headgate.example.", show_default=False)],
    profile: Annotated[str, typer.Option(help="Its name.")] = "default",
    team: Annotated[str, typer.Option(help="The team of new objects.")] = "",
    keyring: Annotated[bool, typer.Option("--keyring", help="Keep the token in the system's keyring.")] = False,
) -> None:
    """Keep a site and your token for it as a profile.

    The token comes from HEADGATE_TOKEN, else from standard input or a prompt; never from an argument.
    """
    token = os.environ.get("HEADGATE_TOKEN") or _read_token()
    if not token:
        raise CommandFailed("There is no token. Make one on the page Your account.")
    with Client(url, token, transport=context.transport()) as client:
        user = user_name(client)
        stored = Profile(client.url, team=team, keyring=keyring)
    save_profile(profiles_file(), profile, stored, token)
    typer.echo(f"Logged in to {stored.url} as {user}. Profile {profile} is in {profiles_file()}.")


def _read_token() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Token", hide_input=True)).strip()
    return sys.stdin.readline().strip()


def suspend(supervisor: context.Supervisor) -> None:
    """Let a supervisor's task publish what it holds and end. No other starts."""
    _act(supervisor, "suspend", "is suspended")


def resume(supervisor: context.Supervisor) -> None:
    """Start a suspended supervisor again."""
    _act(supervisor, "resume", "runs again")


def handoff(supervisor: context.Supervisor) -> None:
    """Let a supervisor's task publish and end. The next one is up before it stops."""
    _act(supervisor, "handoff", "hands off")


def reset(
    supervisor: context.Supervisor,
    to: Annotated[
        str,
        typer.Option(
            metavar="POSITION",
            help="earliest, latest, a time such as 2026-11-27T09:00:00Z, or a duration before now such as PT30M.",
        ),
    ] = "",
    partition: Annotated[list[str] | None, typer.Option(metavar="NUMBER=OFFSET", help="Repeat it for several.")] = None,
    yes: Yes = False,
) -> None:
    """Set the stored offsets of a supervisor. This may skip records or store them twice.

    Without --to and --partition all stored offsets are deleted.
    """
    if to and partition:
        raise CommandFailed("Give --to or --partition, not both.")
    offsets = dict(_offset(text) for text in partition or ())
    with context.site() as client:
        if to:
            topics = _previewed(client, supervisor, to)
            confirm(f"Reset the stored offsets of {supervisor} to these?", yes)
            client.reset(supervisor, position=to, topics=topics)
        else:
            what = f"of {len(offsets)} partitions" if offsets else "of all partitions"
            confirm(f"Reset the stored offsets {what} of {supervisor}? This may skip records or store them twice.", yes)
            client.reset(supervisor, partitions=offsets or None)
    typer.echo(f"The stored offsets of {supervisor} are reset.")


def _previewed(client: Client, supervisor: str, position: str) -> dict[str, dict[int, int]]:
    """The offsets of a position by topic, after they are printed."""
    plan = client.preview_reset(supervisor, position)
    rows = [{"topic": topic["topic"], **partition} for topic in plan["topics"] for partition in topic["partitions"]]
    columns = ("topic", "partition", "stored", "offset", "time", "skipped", "read_again", "records")
    typer.echo(written(rows, Form.table, columns))
    for warning in plan["warnings"]:
        typer.echo(plain(warning), err=True)
    typer.echo(f"Skips {plan['skipped']:,} unread offsets and reads {plan['read_again']:,} again.")
    return {t["topic"]: {p["partition"]: p["offset"] for p in t["partitions"]} for t in plan["topics"]}


def _offset(text: str) -> tuple[int, int]:
    number, _, offset = text.partition("=")
    if not (number.isdecimal() and offset.isdecimal()):
        raise CommandFailed(f"--partition is {text!r}. Write NUMBER=OFFSET, such as 0=1500.")
    return int(number), int(offset)


def _act(supervisor: str, action: str, done: str) -> None:
    with context.site() as client:
        try:
            client.act(supervisor, action)
        except Conflict as error:
            if "already" not in str(error):
                raise
            typer.echo(str(error))  # what was asked for is so
            return
    typer.echo(f"{supervisor} {done}.")


def confirm(question: str, yes: bool) -> None:
    """Raise ``CommandFailed`` unless the person agrees. A script must have said so before."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("Nothing was changed. Add --yes, as nobody can be asked here.")
    if not typer.confirm(question, err=True):
        raise CommandFailed("Nothing was changed.")
