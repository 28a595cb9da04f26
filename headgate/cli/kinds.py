"""The kinds of objects that ``get`` and ``describe`` know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headgate.cli.errors import CommandFailed
from headgate.client import Client, shapes
from headgate.client.site import path_of


@dataclass(frozen=True)
class Kind:
    """One kind of object of REST."""

    name: str
    aliases: tuple[str, ...]
    path: tuple[str, ...]  # of the list
    columns: tuple[str, ...]
    by: str = "name"  # the field that people call one by
    more: tuple[str, ...] = ()  # what ``describe`` adds
    of_a_team: bool = True  # the list takes a team


KINDS = (
    Kind(
        "supervisor",
        ("supervisors", "sv"),
        ("supervisors",),
        ("id", "team", "datasource", "health.label", "task_count", "version", "health.text"),
        by="id",
        more=("lag",),
    ),
    Kind(
        "task",
        ("tasks",),
        ("tasks",),
        ("id", "kind", "status", "published", "created_at", "error"),
        by="id",
        more=("report",),
    ),
    Kind(
        "datasource",
        ("datasources", "ds"),
        ("datasources",),
        ("name", "team", "rows", "segments", "size_bytes", "min_time", "max_time"),
        more=("completeness",),
    ),
    Kind("connection", ("connections",), ("connections",), ("team", "name", "kind", "addresses", "version")),
    Kind("alert", ("alerts",), ("alerts",), ("id", "team", "rule_name", "subject", "state", "since", "text"), by="id"),
    Kind("alert-rule", ("alert-rules",), ("alerts", "rules"), ("id", "team", "name", "kind", "datasource", "enabled")),
    Kind(
        "alert-receiver",
        ("alert-receivers",),
        ("alerts", "receivers"),
        ("id", "team", "name", "kind", "failures", "last_error"),
    ),
    Kind("team", ("teams",), ("teams",), ("name", "role", "member_count", "description"), of_a_team=False),
)


def was_submitted(supervisor: shapes.Supervisor) -> bool:
    """False of one that another supervisor has made: it reads a topic of a pattern, or it is a backfill."""
    return supervisor["reads_for"] is None and supervisor["fills"] is None


def kind_of(word: str) -> Kind:
    """By its name or another word for it. Raises ``CommandFailed``."""
    for kind in KINDS:
        if word.lower() in (kind.name, *kind.aliases):
            return kind
    raise CommandFailed(f"There is no kind {word!r}. Kinds are {', '.join(k.name for k in KINDS)}.")


def listed(client: Client, kind: Kind, team: str, **filters: Any) -> Iterator[dict[str, Any]]:
    """All of them, or those of a team."""
    chosen = {**filters, **({"team": team} if team and kind.of_a_team else {})}
    return client.pages(path_of(*kind.path), **chosen)


def one_of(client: Client, kind: Kind, name: str, team: str) -> tuple[str, dict[str, Any]]:
    """Its address and itself. Raises ``CommandFailed``, ``ClientError``."""
    if kind.name == "connection" and "/" in name:
        team, _, name = name.partition("/")
    if kind.name in ("connection", "alert", "alert-rule", "alert-receiver"):
        found = [row for row in listed(client, kind, team) if str(row[kind.by]) == name]
        if len(found) != 1:
            advice = "Name one team with --team." if found else "List them with: headgate get " + kind.aliases[0]
            raise CommandFailed(f"{len(found) or 'No'} {kind.name} has the name {name!r}. {advice}")
        if kind.name == "alert":
            return path_of(*kind.path), found[0]
        place = (found[0]["team"], name) if kind.name == "connection" else (found[0]["id"],)
        path = path_of(*kind.path, *place)
    else:
        path = path_of(*kind.path, name)
    return path, client.get(path)
