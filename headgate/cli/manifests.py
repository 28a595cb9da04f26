"""Files that say what a site should have: YAML or JSON, several documents in a file, secrets by reference."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headgate.cli.errors import CommandFailed

# In the order in which they are applied: each may name what comes before it.
KINDS = (
    *("team", "quotas", "member", "connection", "alert-receiver", "supervisor", "retention", "compaction"),
    *("alert-rule", "alert-silence"),
)
OF_A_TEAM = ("member", "connection", "alert-receiver", "supervisor", "alert-rule", "alert-silence")
FIELDS = {"kind", "team", "name", "spec"}
ENDINGS = (".yaml", ".yml", ".json")
_REFERENCE = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")
HIDDEN = "(secret)"
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Manifest:
    """One object that a site should have."""

    kind: str
    name: str
    team: str
    spec: Any = field(repr=False)  # with its secrets
    secret_places: frozenset[Place]  # where they are in it
    origin: str  # its file, for messages

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"


class _Loader(yaml.SafeLoader):
    """YAML without its surprises: a date, ``on`` and ``no`` stay text, and a key that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise CommandFailed(f"{', '.join(twice)} is given twice{str(node.start_mark).replace('  in', '', 1)}.")
        return super().construct_mapping(node, deep)


def _surprises(first: str, tag: str) -> bool:
    """``first``: the character with which a value begins."""
    return tag.endswith(":timestamp") or (tag.endswith(":bool") and first not in "tTfF")


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not _surprises(first, tag)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_manifests(paths: list[Path], environment: Mapping[str, str] | None = None) -> list[Manifest]:
    """All documents of the files and folders, as they are applied. Raises ``CommandFailed`` with every fault."""
    environment = os.environ if environment is None else environment
    found: list[Manifest] = []
    faults: list[str] = []
    for path in _files(paths):
        for number, document in enumerate(_documents(path), 1):
            try:
                found.append(_manifest(document, f"{path}, document {number}", environment))
            except CommandFailed as error:
                faults.append(str(error))
    seen: dict[tuple[str, str, str], str] = {}
    for one in found:
        identity = (one.kind, one.team, one.name)
        if identity in seen:
            faults.append(f"{one.origin}: {one.title} is also in {seen[identity]}. Keep one of them.")
        seen[identity] = one.origin
    if faults:
        raise CommandFailed("\n".join(faults))
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.team, one.name))


def read_one_spec(path: Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The only document of a file, or the spec in it; it need not be complete. Raises ``CommandFailed``."""
    documents = _documents(path)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise CommandFailed(f"{path} must hold one spec.")
    missing: set[str] = set()
    document = _resolved(documents[0], os.environ if environment is None else environment, (), set(), missing)
    if missing:
        raise CommandFailed(f"{path}: the environment has no {', '.join(sorted(missing))}.")
    spec: dict[str, Any] = document["spec"] if document.get("kind") == "supervisor" else document
    return spec


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in ENDINGS and p.is_file())
            if not inside:
                raise CommandFailed(f"{path} has no file with the ending {', '.join(ENDINGS)}.")
            yield from inside
        else:
            yield path


def _documents(path: Path) -> list[Any]:
    """Those that are not empty. JSON is read as JSON: not all of it is YAML."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{path} can't be read: {error}") from None
    try:
        if path.suffix == ".json":
            return [json.loads(text)]
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except CommandFailed as error:
        raise CommandFailed(f"{path}: {error}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise CommandFailed(f"{path} is neither YAML nor JSON: {error}") from None


def _manifest(document: Any, origin: str, environment: Mapping[str, str]) -> Manifest:
    if not isinstance(document, dict):
        raise CommandFailed(f"{origin}: must be an object with kind and spec, or a supervisor's spec.")
    if "kind" not in document and ("ioConfig" in document or "spec" in document):
        document = {"kind": "supervisor", "spec": document}  # a spec alone, as Druid's tools write it
    kind = document.get("kind")
    if kind not in KINDS:
        raise CommandFailed(f"{origin}: kind is {kind!r}. It must be one of {', '.join(KINDS)}.")
    unknown = sorted(str(name) for name in set(document) - FIELDS)
    if unknown:
        raise CommandFailed(f"{origin}: {', '.join(unknown)} is unknown here. Known are {', '.join(sorted(FIELDS))}.")
    missing: set[str] = set()
    places: set[Place] = set()
    spec = _resolved(document.get("spec"), environment, (), places, missing)
    if missing:
        raise CommandFailed(f"{origin}: the environment has no {', '.join(sorted(missing))}.")
    if not isinstance(spec, dict):
        raise CommandFailed(f"{origin}: spec must be an object.")
    name = document.get("name")
    if kind == "supervisor":
        own = _supervisor_name(spec)
        if name not in (None, own):
            raise CommandFailed(f"{origin}: name is {name!r}, but the spec's id is {own!r}.")
        name = own
    team = document.get("team") or ""
    if not isinstance(name, str) or not isinstance(team, str):
        raise CommandFailed(f"{origin}: name is missing, or name or team is not text.")
    return Manifest(kind, name, team, spec, frozenset(places), origin)


def _supervisor_name(spec: dict[str, Any]) -> Any:
    """Its id, else its datasource, in both forms of a spec."""
    inner = spec.get("spec")
    schema = (inner if isinstance(inner, dict) else spec).get("dataSchema")
    return spec.get("id") or (schema.get("dataSource") if isinstance(schema, dict) else None)


def _resolved(value: Any, environment: Mapping[str, str], place: Place, places: set[Place], missing: set[str]) -> Any:
    """The value with references replaced. Their places, and what is not in the environment, are added to the sets."""
    if isinstance(value, dict):
        return {k: _resolved(v, environment, (*place, k), places, missing) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(v, environment, (*place, n), places, missing) for n, v in enumerate(value)]
    if not isinstance(value, str) or not _REFERENCE.search(value):
        return value
    places.add(place)
    missing |= {name for name in _REFERENCE.findall(value) if name not in environment}
    return _REFERENCE.sub(lambda match: environment.get(match[1], ""), value)


def without_secrets(manifest: Manifest) -> Any:
    """The spec fit to be shown."""
    return _hidden(manifest.spec, (), manifest.secret_places)


def _hidden(value: Any, place: Place, places: frozenset[Place]) -> Any:
    if place in places:
        return HIDDEN
    if isinstance(value, dict):
        return {k: _hidden(v, (*place, k), places) for k, v in value.items()}
    if isinstance(value, list):
        return [_hidden(v, (*place, n), places) for n, v in enumerate(value)]
    return value


def secret_values(manifest: Manifest) -> list[str]:
    """Every secret of the spec, the longest first."""
    found: list[str] = []
    for place in manifest.secret_places:
        value = manifest.spec
        for part in place:
            value = value[part]
        found += [str(value), json.dumps(str(value))[1:-1]]  # also as it is written in JSON
    return sorted({v for v in found if v}, key=len, reverse=True)
