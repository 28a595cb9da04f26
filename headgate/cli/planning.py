"""What must change so that a site has what files say. Nothing is changed here: the site tries and takes back."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from headgate.cli.errors import CommandFailed
from headgate.cli.kinds import was_submitted
from headgate.cli.manifests import OF_A_TEAM, Manifest, secret_values, without_secrets
from headgate.cli.resources import RESOURCES, Found, Owned
from headgate.client import Client, ClientError, InvalidRequest, NotFound

CREATE, UPDATE, DELETE, NONE = "create", "update", "delete", "none"
SECRETS_AGAIN = "Its secrets are sent again."
# What is used goes last, and so does who deletes it.
DELETED_IN_ORDER = ("alert-silence", "alert-rule", "supervisor", "alert-receiver", "connection", "member")
UNCHECKED = "It is checked when it is applied: it needs what is created before it."


@dataclass(frozen=True)
class Change:
    """What happens to one object."""

    action: str
    kind: str
    name: str
    team: str = ""
    diff: tuple[str, ...] = ()  # lines with ``+``, ``-`` or a blank in front, without secrets
    note: str = ""
    manifest: Manifest | None = field(default=None, repr=False)
    found: Found | None = field(default=None, repr=False)
    version: int | None = None  # of a supervisor's spec

    @property
    def changes(self) -> bool:
        return self.action != NONE


def plan(
    client: Client, manifests: Sequence[Manifest], *, prune: bool = False, team: str = "", rotate_secrets: bool = False
) -> list[Change]:
    """One entry for each manifest, then the deletions. ``prune`` needs the ``team`` whose other objects go.

    Raises ``CommandFailed`` with every fault.
    """
    if prune and not team:
        raise CommandFailed("--prune needs --team: it deletes only what this team owns.")
    others = sorted({m.team for m in manifests if m.kind in OF_A_TEAM and m.team} - {team}) if prune else []
    if others:
        raise CommandFailed(f"--prune of team {team}, but the files also name team {', '.join(others)}.")
    changes: list[Change] = []
    faults: list[str] = []
    for manifest in manifests:
        try:
            changes.append(_planned(client, manifest, rotate_secrets))
        except (InvalidRequest, NotFound) as error:
            if any(change.action == CREATE and change.kind != manifest.kind for change in changes):
                changes.append(
                    Change(CREATE, manifest.kind, manifest.name, manifest.team, _added(manifest), UNCHECKED, manifest)
                )
            else:
                faults.append(fault_of(manifest, error))
        except (ClientError, CommandFailed) as error:
            faults.append(fault_of(manifest, error))
    if faults:
        raise CommandFailed("\n".join(faults))
    if prune:
        changes += _deletions(client, manifests, team)
    return changes


def fault_of(manifest: Manifest, error: Exception) -> str:
    """What is wrong with a manifest, without its secrets."""
    lines = [f"{manifest.origin}: {manifest.title}: {error}"]
    lines += [f"  {fault}" for fault in (error.faults if isinstance(error, ClientError) else ())]
    text = "\n".join(lines)
    for secret in secret_values(manifest):
        text = text.replace(secret, "(secret)")
    return text


def _planned(client: Client, manifest: Manifest, rotate_secrets: bool) -> Change:
    if manifest.kind == "supervisor":
        return _planned_supervisor(client, manifest)
    resource = RESOURCES[manifest.kind]
    if resource.is_over(manifest):
        return Change(NONE, manifest.kind, manifest.name, manifest.team, (), "Its time is over.", manifest)
    found = resource.find(client, manifest)
    if found is None:
        if resource.set_only:
            raise NotFound(f"there is no {manifest.name}, or you may not see it")
        resource.write(client, manifest, None, dry_run=True)
        return Change(CREATE, manifest.kind, manifest.name, manifest.team, _added(manifest), "", manifest)
    for name in set(resource.fixed) & set(manifest.spec) & set(found.fields):
        if manifest.spec[name] != found.fields[name]:
            raise CommandFailed(f"its {name} can't change from {found.fields[name]}. Delete it first.")
    after = resource.write(client, manifest, found, dry_run=True)
    diff = tuple(diff_of(found.fields, after))
    again = rotate_secrets and bool(manifest.secret_places)
    action = UPDATE if diff or again else NONE
    note = SECRETS_AGAIN if again else ""
    return Change(action, manifest.kind, manifest.name, manifest.team, diff, note, manifest, found)


def _planned_supervisor(client: Client, manifest: Manifest) -> Change:
    planned = client.plan_supervisor(manifest.spec, team=manifest.team or None)
    action = {"restore": UPDATE}.get(planned["action"], planned["action"])
    note = "It was terminated, and starts again." if planned["action"] == "restore" else ""
    if planned["secrets_changed"] is not False:
        note = f"{note} Its secrets change.".strip()
    lines = (line["text"] for line in planned["diff"] if line["kind"] != "place")
    diff = tuple(_masked(lines, secret_values(manifest)))
    name, version = planned["supervisor"], planned["version"]
    return Change(action, "supervisor", name, manifest.team, diff, note, manifest, version=version)


def _masked(lines: Iterable[str], secrets: list[str]) -> Iterator[str]:
    """Headgate masks what it knows as a secret; a reference may also stand for something else."""
    for line in lines:
        for secret in secrets:
            line = line.replace(secret, "(secret)") if len(secret) > 2 else line
        yield line


def _deletions(client: Client, manifests: Sequence[Manifest], team: str) -> list[Change]:
    """What the team has of the kinds in the files, and no file names; in reverse order of application."""
    kept = {(m.kind, m.name) for m in manifests}
    found: list[Change] = []
    for kind in (kind for kind in DELETED_IN_ORDER if any(m.kind == kind for m in manifests)):
        resource = RESOURCES.get(kind)
        if isinstance(resource, Owned):
            found += [Change(DELETE, kind, name, team, found=one) for _, name, one in resource.all(client, team)]
        else:
            submitted = (s["id"] for s in client.supervisors(team=team) if was_submitted(s))
            found += [Change(DELETE, kind, name, team, note="It is terminated.") for name in submitted]
    return [change for change in found if (change.kind, change.name) not in kept]


def _added(manifest: Manifest) -> tuple[str, ...]:
    return tuple(diff_of({}, without_secrets(manifest)))


def diff_of(before: Any, after: Any) -> Iterator[str]:
    """Lines of YAML with ``+``, ``-`` or a blank in front; none when both are equal."""
    if before == after:
        return
    old, new = ([] if not value else text_of(value).splitlines() for value in (before, after))
    yield from (
        line for line in list(difflib.unified_diff(old, new, lineterm="", n=3))[2:] if not line.startswith("@@")
    )


def text_of(value: Any) -> str:
    """YAML, the keys sorted."""
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=100)


def apply(client: Client, change: Change) -> None:
    """Make one change. Raises ``ClientError``, of which ``ChangedMeanwhile`` says that the plan is out of date."""
    manifest = change.manifest
    if manifest is None:
        if change.kind == "supervisor":
            client.act(change.name, "terminate")
        elif change.found is not None:
            RESOURCES[change.kind].delete(client, change.found)
    elif change.kind == "supervisor":
        team, key = manifest.team or None, uuid.uuid4().hex
        client.submit_supervisor(manifest.spec, team=team, version=change.version, key=key)
    else:
        resource = RESOURCES[change.kind]
        found = (
            change.found if change.found is not None or change.note != UNCHECKED else resource.find(client, manifest)
        )
        resource.write(client, manifest, found, dry_run=False)
