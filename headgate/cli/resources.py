"""How each kind of object is read, tried and written over REST. What a file can't set is no part of a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headgate.cli.errors import CommandFailed
from headgate.cli.manifests import Manifest
from headgate.client import Client, InvalidRequest, NotAllowed, NotFound
from headgate.client.site import path_of


@dataclass(frozen=True)
class Found:
    """An object that the site has."""

    path: str
    fields: dict[str, Any]  # what a file can set, without secrets
    version: int | None = None


class Resource(ABC):
    """A kind whose objects are made by POST to ``collection`` and changed by PUT to their own address."""

    collection = ""  # the address of the list; only kinds that are created by POST have one
    fields: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()  # fields that only a creation takes
    set_only = False  # it exists as long as what it belongs to

    @abstractmethod
    def find(self, client: Client, manifest: Manifest) -> Found | None:
        """What the site has of it. Raises ``CommandFailed``, ``ClientError``."""

    def body(self, client: Client, manifest: Manifest) -> dict[str, Any]:
        """What is sent. Raises ``CommandFailed``, ``ClientError``."""
        return dict(manifest.spec)

    def shown(self, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
        """What a file can set, of an answer."""
        return {name: answer[name] for name in self.fields if name in answer}

    def write(self, client: Client, manifest: Manifest, found: Found | None, dry_run: bool) -> dict[str, Any]:
        """Create or change it; with ``dry_run`` the site takes it back. What a file can set of the answer."""
        body = self.body(client, manifest)
        query = {"dryRun": True} if dry_run else {}
        if found is None:
            answer = client.send("POST", self.collection, body, query=query, team=manifest.team or None)
        else:
            body = {name: value for name, value in body.items() if name not in self.fixed}
            version = found.version if not dry_run else None
            answer = client.send("PUT", found.path, body, query=query, version=version)
        return self.shown(client, answer)

    def is_over(self, manifest: Manifest) -> bool:
        """Whether its time is over, so that the site need not have it."""
        return False

    def exported(self, fields: dict[str, Any]) -> dict[str, Any]:
        """What a file gets of the fields."""
        return fields

    def delete(self, client: Client, found: Found) -> None:
        client.send("DELETE", found.path)


class Owned(Resource):
    """A kind of which a team has many: what the files do not name can be pruned."""

    @abstractmethod
    def all(self, client: Client, team: str) -> Iterator[tuple[str, str, Found]]:
        """Team, name and object: those of a team, or of all of the user's teams."""


class Listed(Owned):
    """A kind with numbers as addresses: its objects are found by team and name."""

    def all(self, client: Client, team: str) -> Iterator[tuple[str, str, Found]]:
        for row in client.pages(self.collection, team=team or None):
            yield row["team"], row["name"], Found(f"{self.collection}{row['id']}/", self.shown(client, row))

    def find(self, client: Client, manifest: Manifest) -> Found | None:
        same = [found for _, name, found in self.all(client, manifest.team) if name == manifest.name]
        if len(same) > 1:
            raise CommandFailed(f"{manifest.origin}: several teams have {manifest.title}. Add its team.")
        return same[0] if same else None

    def body(self, client: Client, manifest: Manifest) -> dict[str, Any]:
        return {"name": manifest.name, **manifest.spec}


class Receivers(Listed):
    collection = path_of("alerts", "receivers")
    fields = ("kind", "addresses")
    fixed = ("kind",)

    def shown(self, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
        shown = super().shown(client, answer)
        return shown if answer["kind"] == "email" else {"kind": answer["kind"], "host": answer["address"]}

    def exported(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Without the host: the address itself is a secret, and stays when a file leaves it out."""
        return {name: value for name, value in fields.items() if name != "host"}


class Rules(Listed):
    """Its receivers are numbers in REST, and names in files."""

    collection = path_of("alerts", "rules")
    fields = ("kind", "datasource", "params", "hold_s", "clear_s", "enabled")
    fixed = ("kind",)

    def shown(self, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
        names = {number: name for name, number in self._receivers(client, answer["team"])}
        return {**super().shown(client, answer), "receivers": sorted(names.get(n, str(n)) for n in answer["receivers"])}

    def body(self, client: Client, manifest: Manifest) -> dict[str, Any]:
        body = super().body(client, manifest)
        numbers = dict(self._receivers(client, manifest.team))
        unknown = [name for name in body.get("receivers", ()) if name not in numbers]
        if unknown:
            raise InvalidRequest(f"There is no alert-receiver {', '.join(map(str, unknown))}.")
        return {**body, "receivers": [numbers[name] for name in body.get("receivers", ())]}

    def _receivers(self, client: Client, team: str) -> Iterator[tuple[str, int]]:
        return ((r["name"], r["id"]) for r in client.pages(path_of("alerts", "receivers"), team=team or None))


class Silences(Listed):
    """Its reason is its name. No silence can be changed: another one takes its place, and it ends."""

    collection = path_of("alerts", "silences")

    def all(self, client: Client, team: str) -> Iterator[tuple[str, str, Found]]:
        """Of several with one reason the newest."""
        seen = set()
        for row in client.pages(self.collection, team=team or None):
            if (row["team"], row["reason"]) not in seen:
                seen.add((row["team"], row["reason"]))
                yield row["team"], row["reason"], Found(f"{self.collection}{row['id']}/", self.shown(client, row))

    def shown(self, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
        rules = {number: name for name, number in self._rules(client, answer["team"])} if answer["rule"] else {}
        shown = {"rule": rules.get(answer["rule"], answer["rule"]), "datasource": answer["datasource"]}
        return {**{name: value for name, value in shown.items() if value is not None}, "ends_at": answer["ends_at"]}

    def body(self, client: Client, manifest: Manifest) -> dict[str, Any]:
        if "for_s" in manifest.spec:
            raise CommandFailed("give ends_at instead of for_s: each run would make it longer.")
        body = {"reason": manifest.name, **({"team": manifest.team} if manifest.team else {}), **manifest.spec}
        if "rule" in body:
            numbers = dict(self._rules(client, manifest.team))
            if body["rule"] not in numbers:
                raise InvalidRequest(f"There is no alert-rule {body['rule']}.")
            body["rule"] = numbers[body["rule"]]
        return body

    def write(self, client: Client, manifest: Manifest, found: Found | None, dry_run: bool) -> dict[str, Any]:
        shown = super().write(client, manifest, None, dry_run)
        if found is not None and not dry_run:
            self.delete(client, found)
        return shown

    def is_over(self, manifest: Manifest) -> bool:
        try:
            ends_at = datetime.fromisoformat(str(manifest.spec.get("ends_at")))
        except ValueError:
            return False
        return (ends_at if ends_at.tzinfo else ends_at.replace(tzinfo=UTC)) <= datetime.now(UTC)

    def _rules(self, client: Client, team: str) -> Iterator[tuple[str, int]]:
        return ((r["name"], r["id"]) for r in client.pages(path_of("alerts", "rules"), team=team or None))


class Members(Owned):
    """The people of a team by their user names: members, and those who are invited."""

    fields = ("role",)

    def all(self, client: Client, team: str) -> Iterator[tuple[str, str, Found]]:
        """Without those who are invited, for a user who may not see them."""
        for name in [team] if team else _teams(client):
            for row in [*client.pages(path_of("teams", name, "members")), *self._invited(client, name)]:
                yield name, row["username"], Found(self._path(name, row["username"]), self.shown(client, row))

    def find(self, client: Client, manifest: Manifest) -> Found | None:
        if not manifest.team:
            raise CommandFailed("name its team.")
        return next((found for _, name, found in self.all(client, manifest.team) if name == manifest.name), None)

    def write(self, client: Client, manifest: Manifest, found: Found | None, dry_run: bool) -> dict[str, Any]:
        path = self._path(manifest.team, manifest.name)
        return super().write(client, manifest, found or Found(path, {}), dry_run)

    def _path(self, team: str, username: str) -> str:
        return path_of("teams", team, "members", username)

    def _invited(self, client: Client, team: str) -> list[dict[str, Any]]:
        try:
            return list(client.pages(path_of("teams", team, "invitations")))
        except NotAllowed:
            return []


class Connections(Owned):
    collection = path_of("connections")
    fields = ("kind", "description", "properties")
    fixed = ("name", "kind")

    def all(self, client: Client, team: str) -> Iterator[tuple[str, str, Found]]:
        for row in client.pages(self.collection, team=team or None):
            found = self._get(client, row["team"], row["name"])
            if found is not None:
                yield row["team"], row["name"], found

    def find(self, client: Client, manifest: Manifest) -> Found | None:
        teams = [manifest.team] if manifest.team else _teams(client)
        found = [one for team in teams if (one := self._get(client, team, manifest.name)) is not None]
        if len(found) > 1:
            raise CommandFailed(f"{manifest.origin}: several teams have {manifest.title}. Add its team.")
        return found[0] if found else None

    def body(self, client: Client, manifest: Manifest) -> dict[str, Any]:
        return {"name": manifest.name, **manifest.spec}

    def _get(self, client: Client, team: str, name: str) -> Found | None:
        path = path_of("connections", team, name)
        answer = _or_none(client, path)
        return None if answer is None else Found(path, self.shown(client, answer), answer["version"])


class Named(Resource):
    """A kind whose objects have their name in their address."""

    @abstractmethod
    def path(self, name: str) -> str:
        """The object's address."""

    def read(self, client: Client, name: str) -> Found | None:
        """By the name alone."""
        answer = _or_none(client, self.path(name))
        return None if answer is None else Found(self.path(name), self.shown(client, answer))

    def find(self, client: Client, manifest: Manifest) -> Found | None:
        return self.read(client, manifest.name)


class Setting(Named):
    """Something of a datasource or a team that is set, never created or deleted. ``suffix``: of its address."""

    set_only = True

    def __init__(self, owner: str, suffix: str, fields: tuple[str, ...]) -> None:
        self.owner, self.suffix, self.fields = owner, suffix, fields

    def path(self, name: str) -> str:
        return path_of(self.owner, name, self.suffix)

    def write(self, client: Client, manifest: Manifest, found: Found | None, dry_run: bool) -> dict[str, Any]:
        return super().write(client, manifest, found or Found(self.path(manifest.name), {}), dry_run)


class Quotas(Setting):
    def shown(self, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
        return {name: answer[name]["limit"] for name in self.fields}


class Teams(Named):
    fields = ("description",)

    def path(self, name: str) -> str:
        return path_of("teams", name)

    def write(self, client: Client, manifest: Manifest, found: Found | None, dry_run: bool) -> dict[str, Any]:
        if found is None:
            query = {"dryRun": True} if dry_run else {}
            client.send("POST", path_of("teams"), {"name": manifest.name}, query=query)
            if dry_run:
                return dict(manifest.spec)
        return super().write(client, manifest, found or Found(self.path(manifest.name), {}), dry_run)


QUOTAS = ("indexers", "rows_a_day", "stored_bytes", "sql_seconds", "sql_mebibytes", "sql_rows", "sql_queries")
RESOURCES: dict[str, Resource] = {
    "team": Teams(),
    "quotas": Quotas("teams", "quotas", QUOTAS),
    "member": Members(),
    "connection": Connections(),
    "alert-receiver": Receivers(),
    "retention": Setting("datasources", "rules", ("rules",)),
    "compaction": Setting("datasources", "compaction", ("config",)),
    "alert-rule": Rules(),
    "alert-silence": Silences(),
}


def _or_none(client: Client, path: str) -> dict[str, Any] | None:
    try:
        answer: dict[str, Any] = client.get(path)
    except NotFound:
        return None
    return answer


def _teams(client: Client) -> list[str]:
    return [row["name"] for row in client.pages(path_of("teams"))]
