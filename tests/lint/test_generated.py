"""What is generated is what its generator would give: migrations of models, locks of dependencies."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.lint.sources import PROJECT, no_faults

LOCKS = {"requirements.txt": ["demo"], "requirements-dev.txt": ["demo", "dev"]}
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())


def test_every_change_of_a_model_has_its_migration() -> None:
    loader = MigrationLoader(None)
    detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
    changes = detector.changes(graph=loader.graph)
    assert {app: [m.operations for m in found] for app, found in changes.items()} == {}, "run manage.py makemigrations"


def pins(lock: str) -> dict[str, str]:
    lines = (PROJECT / lock).read_text().splitlines()
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", line) for line in lines)
    return {canonicalize_name(m[1]): m[2] for m in found if m}


def wanted(groups: list[str]) -> Iterator[Requirement]:
    project = DECLARED["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    declared += [d for g in groups for d in DECLARED["dependency-groups"][g]]
    return (Requirement(text) for text in declared if isinstance(text, str))  # else a group, which the lock has too


def unmet(lock: str) -> Iterator[str]:
    """What is declared, and pinned otherwise or not at all."""
    pinned = pins(lock)
    assert len(pinned) > 20, lock
    for want in wanted(LOCKS[lock]):
        pin = pinned.get(canonicalize_name(want.name), "0")
        if not want.specifier.contains(pin, prereleases=True):
            yield f"{lock}: {want}"


def test_a_lock_has_what_is_declared() -> None:
    no_faults((fault for lock in LOCKS for fault in unmet(lock)), "run make lock")


def test_both_locks_pin_the_same() -> None:
    small, large = (pins(lock) for lock in LOCKS)
    assert {name: large.get(name) for name in small} == small
