"""Who may know whom, where import-linter does not see it: an app reaches no model above it by the relation's name."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator

from django.apps import apps

from tests.lint.sources import PROJECT, files, name_of, no_faults, tree_of

PACKAGE = "controlplane."


def layers() -> list[str]:
    """The apps with models, from the lowest up, as import-linter is told."""
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    told = next(c["layers"] for c in contracts if c["name"] == "Layers of the control plane")
    labels = {config.label for config in apps.get_app_configs() if config.name.startswith(PACKAGE)}
    siblings = [part.strip() for layer in reversed(told) for part in layer.split("|")]
    return [name for part in siblings if (name := part.removeprefix(PACKAGE)) in labels]


LAYERS = layers()


def relations_from_above(app: str) -> set[str]:
    """The names by which models of higher apps can be reached from models of this app and of lower ones."""
    below = LAYERS[: LAYERS.index(app) + 1]
    return {
        relation.get_accessor_name() or ""
        for label in below
        for model in apps.get_app_config(label).get_models()
        for relation in model._meta.related_objects
        if relation.related_model._meta.app_label not in below
    } - {""}


def lookups(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names of keyword arguments, and texts, that follow a relation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and "__" in (node.arg or ""):
            yield node.value.lineno, str(node.arg)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__" in node.value:
            yield node.lineno, node.value


def lookups_above(app: str) -> Iterator[str]:
    """Where code of an app follows a relation to a model of a higher app."""
    above = relations_from_above(app)
    for path in files("*.py", f"controlplane/{app}"):
        if "migrations" not in path.parts:
            found = lookups(tree_of(path))
            yield from (f"{name_of(path)}:{line}: {name}" for line, name in found if above & set(name.split("__")))


def test_no_lookup_leads_to_an_app_above() -> None:
    assert len(LAYERS) > 5
    no_faults((fault for app in LAYERS for fault in lookups_above(app)), "no lookup leads to an app above")


def test_relations_from_above_are_found() -> None:
    assert {"tasks", "supervisors", "intervals"} <= relations_from_above("datasources")
    assert "intervals" not in relations_from_above("segments")
    tree = ast.parse('f(tasks__status=1, rows=Sum("intervals__rows"), named="tasks")')
    assert [name for _, name in lookups(tree)] == ["tasks__status", "intervals__rows"]
