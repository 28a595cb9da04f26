"""``apply`` and ``export``: a site's objects as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
import yaml

from headgate.cli import context
from headgate.cli.acting import Yes, confirm
from headgate.cli.errors import CommandFailed, Ended
from headgate.cli.kinds import was_submitted
from headgate.cli.manifests import KINDS, OF_A_TEAM, read_manifests
from headgate.cli.output import plain
from headgate.cli.planning import CREATE, DELETE, NONE, UPDATE, Change, apply, fault_of, plan
from headgate.cli.resources import RESOURCES, Named, Owned
from headgate.client import ChangedMeanwhile, Client, ClientError, NotAllowed
from headgate.client.site import path_of

PLAN_HAS_CHANGES = 2
LONGEST_FILE_NAME = 200  # characters, without the ending
SIGNS = {CREATE: "+", UPDATE: "~", DELETE: "-", NONE: " "}
WORDS = {CREATE: "created", UPDATE: "changed", DELETE: "deleted", NONE: "unchanged"}


def apply_files(
    file: Annotated[list[Path], typer.Option("-f", "--file", help="A file or a folder; repeat it for several.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan only. Exit code 2 if it has changes, 0 if it has none.")
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Delete what the team has and the files do not.")] = False,
    rotate_secrets: Annotated[
        bool, typer.Option("--rotate-secrets", help="Send the secrets of connections and receivers again.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make a site have what files say. Prints the plan first, and changes nothing that is already so."""
    manifests = read_manifests(file)
    if not manifests:
        raise CommandFailed("The files have no documents.")
    team = context.login().team
    manifests = [replace(m, team=team) if m.kind in OF_A_TEAM and not m.team else m for m in manifests]
    with context.site() as client:
        changes = plan(client, manifests, prune=prune, team=context.options.team, rotate_secrets=rotate_secrets)
        typer.echo(plan_text(changes))
        wanted = [change for change in changes if change.changes]
        if not wanted:
            return
        if dry_run:
            raise Ended(PLAN_HAS_CHANGES)
        confirm("Apply this plan?", yes)
        _apply_all(client, wanted)


def _apply_all(client: Client, changes: Sequence[Change]) -> None:
    for number, change in enumerate(changes):
        try:
            apply(client, change)
        except ClientError as error:
            text = fault_of(change.manifest, error) if change.manifest else f"{change.kind} {change.name}: {error}"
            advice = " Apply again: the plan is out of date." if isinstance(error, ChangedMeanwhile) else ""
            raise CommandFailed(f"{text}{advice}\n{number} of {len(changes)} changes were made.") from None
        typer.echo(f"{change.kind} {change.name} {WORDS[change.action]}")


def plan_text(changes: Sequence[Change]) -> str:
    """The plan for people: each object with its diff, then the sums."""
    lines = []
    for change in changes:
        lines.append(f"{SIGNS[change.action]} {change.kind} {change.name}  {change.note}".rstrip())
        lines += [f"    {line}" for line in change.diff]
    counts = {action: sum(c.action == action for c in changes) for action in (CREATE, UPDATE, DELETE, NONE)}
    lines.append(
        f"Plan: {counts[CREATE]} to create, {counts[UPDATE]} to change, {counts[DELETE]} to delete, "
        f"{counts[NONE]} unchanged."
    )
    return plain("\n".join(lines))


def export(
    kinds: Annotated[list[str] | None, typer.Argument(metavar="[KIND]...", help=", ".join(KINDS))] = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="One file for each object.")] = None,
) -> None:
    """Write a site's objects as files for apply. Secrets are not in them."""
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise CommandFailed(f"There is no kind {', '.join(unknown)}. Kinds are {', '.join(KINDS)}.")
    with context.site() as client:
        documents = [d for kind in KINDS if not kinds or kind in kinds for d in _exported(client, kind)]
    texts = [yaml.safe_dump(d, sort_keys=False, allow_unicode=True, width=120) for d in documents]
    if to is None:
        typer.echo(plain("---\n".join(texts)), nl=False)
        return
    to.mkdir(parents=True, exist_ok=True)
    for document, text in zip(documents, texts, strict=True):
        (to / _file_name(document)).write_text(text, encoding="utf-8")
    typer.echo(f"Wrote {len(texts)} files to {to}.")


def _file_name(document: dict[str, Any]) -> str:
    """Escaped like an address, and no longer than file systems allow: two names never become one."""
    name = quote("-".join(document[part] for part in ("kind", "team", "name") if part in document), safe="")
    if len(name) > LONGEST_FILE_NAME:
        name = f"{name[: LONGEST_FILE_NAME - 17]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{name}.yaml"


def _exported(client: Client, kind: str) -> Iterator[dict[str, Any]]:
    team = context.options.team
    resource = RESOURCES.get(kind)
    if kind == "supervisor":
        for row in client.supervisors(team=team or None):
            if was_submitted(row):
                # A file without suspended leaves it as it is: applying it resumes nothing.
                spec = {k: v for k, v in client.supervisor(row["id"])["spec"].items() if (k, v) != ("suspended", False)}
                yield {"kind": kind, "team": row["team"], "name": row["id"], "spec": spec}
    elif isinstance(resource, Owned):
        for owner, name, found in resource.all(client, team):
            yield {"kind": kind, "team": owner, "name": name, "spec": resource.exported(found.fields)}
    elif isinstance(resource, Named):
        yield from _owned(client, kind, resource, team)


def _owned(client: Client, kind: str, resource: Named, team: str) -> Iterator[dict[str, Any]]:
    """What belongs to each datasource or team; what the user's role does not show is left out."""
    owners = "teams" if kind in ("team", "quotas") else "datasources"
    filters = {"team": team} if team and owners == "datasources" else {}
    for row in client.pages(path_of(owners), **filters):
        if owners == "teams" and team not in ("", row["name"]):
            continue
        try:
            found = resource.read(client, row["name"])
        except NotAllowed:
            typer.echo(f"{kind} {row['name']} is left out: your role does not show it.", err=True)
            continue
        if found is not None and (kind == "compaction" or any(found.fields.values())):
            yield {"kind": kind, "name": row["name"], "spec": found.fields}
