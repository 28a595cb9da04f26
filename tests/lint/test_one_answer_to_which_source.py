"""No name decides which source it is: whoever must know asks its traits, and no raw spec is read beside its model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ingestion.specs.inputs.sources import SOURCES, all_traits, source_types
from tests.lint.sources import files, name_of, no_faults, places, tree_of

NAMES = {name for t in all_traits() for name in (t.kind, t.task_type, t.supervisor_type)}
PROGRESS = {traits.progress.kind for traits in all_traits()}  # words of their own, too
MODELS = {model.__name__ for model in SOURCES}
# The stack's own parts have names that are no source's, and its demo's specs are a user's.
APART = ("controlplane/embedded/", "/migrations/")
# They write into a document that a user is about to send, or name places in it.
OF_DOCUMENTS = {
    "controlplane/connections/admission.py",
    "controlplane/connections/named_connections.py",
    "controlplane/compaction/rewrites.py",  # of the task that it submits
    "controlplane/loading/druid_import.py",
    "controlplane/loading/ignored_fields.py",
    "controlplane/supervisors/live_trial.py",  # of the samples that it asks for
    "controlplane/tasks/diagnosis.py",  # which options a spec sets
    "controlplane/tasks/input_locations.py",
    "controlplane/api/druid/openapi.py",
    "controlplane/datasources/sampling.py",
    "controlplane/loading/documents.py",
    "controlplane/loading/step_previews.py",
    "controlplane/loading/services.py",
    "frontend/load/forms.py",
    "frontend/load/parse_form.py",
    "frontend/load/row_forms.py",
    "frontend/load/steps.py",
    "frontend/views/load.py",
    "frontend/spec_examples.py",
    "frontend/preview.py",
}
# Druid calls an input format and a time column ``kafka``, too; a page of records says where it found them.
OF_OTHER_THINGS = {
    "controlplane/loading/step_previews.py",
    "controlplane/loading/services.py",  # what a draft begins as
    "frontend/load/parse_form.py",
    "frontend/load/steps.py",
    "frontend/views/records.py",
    "_times.html",
}
# They look for rows by what their stored specs say, where the database does it.
OF_QUERIES = {
    "controlplane/supervisors/connections.py",
    "controlplane/supervisors/group_holders.py",
    "controlplane/supervisors/topic_readers.py",
    "controlplane/supervisors/repairs.py",
    "controlplane/supervisors/repair_pace.py",
    "controlplane/supervisors/selectors.py",
}


def house() -> list[Path]:
    """The modules that must not know which sources there are."""
    found = files("*.py", "controlplane", "frontend")
    return [path for path in found if not any(apart in str(path) for apart in APART)]


def faults(tree: ast.Module, place: str = "") -> list[str]:
    """What decides by a name in a module, as ``place:line: what``."""
    return [f"{place}:{line}: {what}" for line, what in _found(tree, place)]


def _found(tree: ast.Module, place: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text in NAMES and place not in OF_OTHER_THINGS:
                yield node.lineno, f"names {text!r}: ask a trait"
            case ast.Constant(value="ioConfig") if place not in OF_DOCUMENTS:
                yield node.lineno, "reads a raw ioConfig: a model has it (io_config)"
            case ast.Constant(value=str(text)) if "ioConfig__" in text and place not in OF_QUERIES:
                yield node.lineno, "looks into stored ioConfigs: is there a column?"
            case ast.Call(func=ast.Name("isinstance"), args=[_, kind]) if MODELS & _names_in(kind):
                yield node.lineno, "asks for a source's model: ask a trait"
            case ast.keyword(arg=str(text)) if "ioConfig__" in text and place not in OF_QUERIES:
                yield node.lineno, "looks into stored ioConfigs: is there a column?"
            case ast.Compare(left=ast.Attribute(attr="kind"), comparators=[ast.Constant(value=text)]) if (
                text in PROGRESS
            ):
                yield node.lineno, "compares how progress is kept: ask a trait"
            case ast.Compare(left=ast.Attribute(attr="assignment")):
                yield node.lineno, "compares an assignment: ask a trait"


def _names_in(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def test_no_module_decides_by_a_name() -> None:
    found = (fault for path in house() for fault in faults(tree_of(path), name_of(path)))
    no_faults(found, "no module decides by a source's name")


WRONG = [
    'if task.kind == "share_group": pass',
    'if source.kind == "offsets": pass',
    'kinds = ("offset_range", "consumer_group")',
    'x = {"index_kafka": 1}',
    'if spec["type"] in ("kafka", "index_kafka"): pass',
    "if io_config.assignment == other: pass",
    "isinstance(io_config, KafkaIOConfig)",
    "isinstance(io_config, (ShareGroupIOConfig, str))",
    'topic = spec["spec"]["ioConfig"]["topic"]',
    'topic = spec.get("ioConfig", {})',
    "found = tasks.filter(spec__spec__ioConfig__topic=topic)",
    "found = tasks.filter(**{'spec__spec__ioConfig__groupId': group})",
]


def test_what_is_no_answer_is_found() -> None:
    """Each of these lines breaks the rule."""
    no_faults((line for line in WRONG if not faults(ast.parse(line))), "the rule finds each of these lines")


def test_templates_ask_traits_too() -> None:
    named = r"""ioConfig\.|["'](""" + "|".join(map(re.escape, sorted(NAMES))) + r""")["']"""
    templates = [path for path in files("*.html", "templates") if path.name not in OF_OTHER_THINGS]
    found = (place for path in templates for place in places(named, path))
    no_faults(found, "no template decides by a source's name, or reads a raw ioConfig")


def test_each_source_has_names_of_its_own() -> None:
    """Druid's types lead to the model too, and no two sources share a kind."""
    assert {name for t in all_traits() for name in (t.task_type, t.supervisor_type)} <= set(source_types())
    assert len(set(source_types())) == len(source_types())
    kinds = [traits.kind for traits in all_traits()]
    assert len(set(kinds)) == len(kinds)
