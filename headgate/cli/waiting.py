"""Waiting until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli import context
from headgate.cli.errors import CommandFailed
from headgate.client import Client, TryLater, Unreachable

GOALS = {"supervisor": ("healthy", "caught-up"), "task": ("complete",), "datasource": ("complete",)}
CAUGHT_UP = ("up_to_date", "idle", "completed")
STOPPED = ("suspended", "terminated")
POLL_S = 2.0


@dataclass(frozen=True)
class Seen:
    """What was seen while waiting."""

    text: str
    done: bool = False  # it is so
    failed: bool = False  # it will never be so


def wait(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(GOALS), show_default=False)],
    name: str,
    until: Annotated[str, typer.Option(help="healthy, caught-up or complete.", show_default=False)],
    time_: Annotated[
        str, typer.Option("--time", metavar="TIME", help="Of a datasource: complete until this time, in UTC.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=0, help="Seconds.")] = 600.0,
) -> None:
    """Wait until a supervisor is healthy or caught up, a task has succeeded, or a datasource is complete.

    Exit code 1 if that can't happen any more, or not in time.
    """
    if until not in GOALS.get(kind, ()):
        allowed = "; ".join(f"{k}: {' or '.join(goals)}" for k, goals in GOALS.items())
        raise CommandFailed(f"A {kind} can't be waited for until {until!r}. Possible are {allowed}.")
    goal = _time_of(time_) if kind == "datasource" else None
    with context.site() as client:
        seen = wait_for(lambda: look(client, kind, name, until, goal), timeout)
    if not seen.done:
        raise CommandFailed(f"{kind} {name}: {seen.text}" + ("" if seen.failed else f" (after {timeout:g} s)"))
    typer.echo(f"{kind} {name}: {seen.text}")


def wait_for(
    observe: Callable[[], Seen],
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Seen:
    """The last thing seen: what decides, or what was so when the time was over. A site that is away is asked again."""
    end = clock() + timeout_s
    while True:
        try:
            seen = observe()
        except (Unreachable, TryLater) as error:
            seen = Seen(str(error))
        if seen.done or seen.failed or clock() >= end:
            return seen
        sleep(min(POLL_S, max(end - clock(), 0.0)))


def look(client: Client, kind: str, name: str, until: str, goal: datetime | None) -> Seen:
    """How it is now. Raises ``ClientError``."""
    if kind == "supervisor":
        health = client.supervisor(name)["health"]
        return judge_health(health["kind"], health["code"], f"{health['label']}. {health['text']}", until)
    if kind == "task":
        task = client.task(name)
        text = f"{task['status']} {task['error']}".strip()
        return Seen(text, done=task["status"] == "SUCCESS", failed=task["status"] == "FAILED")
    found = client.completeness(name)
    upto = found["complete_until"]
    done = upto is not None and goal is not None and datetime.fromisoformat(upto) >= goal
    return Seen(f"complete until {upto or 'an unknown time'}. {found['reason']}".strip(), done=done)


def judge_health(kind: str, code: str, text: str, until: str) -> Seen:
    """``caught-up``: it has read all of its topic; ``healthy``: it works as it should."""
    if code in STOPPED:
        return Seen(text, failed=True)
    done = code in CAUGHT_UP or (until == "healthy" and kind == "ok")
    return Seen(text, done=done)


def _time_of(text: str) -> datetime:
    try:
        time_ = datetime.fromisoformat(text)
    except ValueError:
        raise CommandFailed("Give --time, such as 2026-11-27T00:00:00Z.") from None
    return time_ if time_.tzinfo else time_.replace(tzinfo=UTC)
