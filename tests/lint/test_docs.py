"""The documentation says what the code does: every field, setting, command, address and state, with its default."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from django.urls import Resolver404, resolve

from controlplane.alerts.rule_kinds import KINDS
from controlplane.api import problems
from controlplane.api.fallback import fallback
from controlplane.common.health import Code, Kind, codes_of
from controlplane.publishing.selectors import fate
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.states import Detail, State
from controlplane.tasks.models import Goal, Status, task_kinds
from controlplane.teams.permissions import Action
from controlplane.teams.roles import Role
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import IndexerStatus, QuarantinedRecord, Refusal
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from ingestion.specs.tasks.segment_tasks import is_segment_task, parse_segment_task
from tests.lint.sources import PROJECT, differences, files, name_of, no_faults, text_of, tree_of
from tests.support import pages
from tests.support.pages import anchors, codes, first_codes, rows, without_code
from tests.support.routes import all_routes

DOCS = PROJECT / "docs"
PAGES = sorted([*PROJECT.glob("*.md"), *DOCS.rglob("*.md")])
SECTIONS_OF_OTHERS = ("api/", "druid/", "iceberg/", "status", "internal/", "healthz", "readyz", "metrics")
# Written by the browser test, which takes it from the page itself.
MADE_BY_TESTS = {DOCS / "images" / "timeline.png"}


def page_of(name: str) -> str:
    return text_of(DOCS / name)


REFERENCE_PAGES = sorted((DOCS / "reference").glob("*.md"))
REFERENCE = "\n".join(text_of(page) for page in REFERENCE_PAGES)
# A page that is longer holds two subjects.
LONGEST_PAGE_WORDS = 2_400


def section(title: str, text: str = REFERENCE) -> str:
    return pages.section(title, text)


def described(title: str) -> set[str]:
    return set(first_codes(section(title)))


def test_a_page_of_the_reference_has_one_subject() -> None:
    titles = re.findall(r"^#+ (.+)$", without_code(REFERENCE), re.MULTILINE)
    assert len(titles) == len(set(titles)), "the checks find a section by its title"
    long = (page.name for page in REFERENCE_PAGES if len(text_of(page).split()) > LONGEST_PAGE_WORDS)
    no_faults(long, "these pages hold more than one subject: cut them up")


def test_the_contents_page_lists_every_page_and_section() -> None:
    listed = set(re.findall(r"\]\(reference/([^)]+)\)", page_of("reference.md")))
    expected: set[str] = set()
    for page in REFERENCE_PAGES:
        titles = re.findall(r"^## (.+)$", without_code(text_of(page)), re.MULTILINE)
        expected |= {page.name, *(f"{page.name}#{anchor}" for anchor in pages.anchors_of(titles))}
    no_faults(sorted(expected - listed), "docs/reference.md does not list these")


# Settings and commands


def code_of(*packages: str, having: str = "") -> Iterator[ast.Module]:
    """The files whose text matches: to parse all of them takes a second."""
    return (tree_of(path) for path in files("*.py", *packages) if re.search(having, text_of(path)))


@cache
def settings_in_code() -> dict[str, ast.expr | None]:
    """Every environment variable that the code names, with its default where a call of ``env`` gives one."""
    found: dict[str, ast.expr | None] = {}
    trees = code_of("controlplane", "ingestion", "frontend", having=r"HEADGATE_|DATABASE_URL|\benv\.")
    for node in (n for tree in trees for n in ast.walk(tree)):
        if isinstance(node, ast.Constant) and re.fullmatch(r"HEADGATE_[A-Z_]+|DATABASE_URL", str(node.value)):
            found.setdefault(str(node.value), None)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 2:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and _is_env(node.func):
                found[name.value] = node.args[1]
    return found


def _is_env(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == "env"


SETTING_ROWS = {codes(row[0])[0]: row for row in rows(section("Settings"))}


def test_every_setting_is_described_and_nothing_else() -> None:
    assert len(settings_in_code()) > 25
    named = {c for c in codes(section("Settings")) if re.fullmatch(r"HEADGATE_[A-Z_]+|DATABASE_URL", c)}
    no_faults(differences(named, settings_in_code()), "the table of settings")


def test_a_setting_has_its_default() -> None:
    values = {name: default.value for name, default in settings_in_code().items() if isinstance(default, ast.Constant)}
    faults = [
        f"{name}: the code has {expected}"
        for name, value in sorted(values.items())
        if SETTING_ROWS.get(name, ["", ""])[1] != (expected := f"`{value!s}`" if value != "" else "none")
    ]
    no_faults(faults, "the table of settings has another default")


def test_settings_without_a_default_are_required_or_off() -> None:
    assert SETTING_ROWS["DATABASE_URL"][1] == SETTING_ROWS["HEADGATE_SECRET_KEY"][1] == "required"
    for name in ("HEADGATE_DEBUG", "HEADGATE_INSECURE_COOKIES"):
        assert settings_in_code()[name] is None
        assert SETTING_ROWS[name][1] == "`0`"


def test_no_page_names_a_setting_that_there_is_not() -> None:
    code = "".join(text_of(path) for path in files("*.py", "headgate"))
    of_users = set(re.findall(r"\"(HEADGATE_[A-Z_]+)\"", code))  # read where Spark applications run
    faults = [
        f"{name_of(page)}: {name}"
        for page in [*PAGES, PROJECT / ".env.example"]
        for name in sorted(set(re.findall(r"HEADGATE_[A-Z_]*[A-Z]", text_of(page))) - of_users)
        if name.removesuffix("_FILE") not in settings_in_code()
    ]
    no_faults(faults, "there are no such settings")


def test_every_make_target_is_described_and_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    commands = {code.removeprefix("make ") for code in described("Commands")}
    no_faults(differences(commands, targets), "the table of commands")
    named = {page: re.findall(r"(?:`|^)make ([a-z-]+)", text_of(page), re.MULTILINE) for page in PAGES}
    unknown = (f"{name_of(page)}: make {name}" for page in PAGES for name in sorted({*named[page]} - targets))
    no_faults(unknown, "the Makefile has no such targets")


# Addresses


def as_documented(pattern: str) -> str:
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern)


def documented_addresses() -> dict[str, set[str]]:
    """Path → methods."""
    found: dict[str, set[str]] = {}
    for code in first_codes(
        section("REST")
        + section("Druid's addresses")
        + section("Addresses of teams and people")
        + section("The sampler")
        + section("Addresses of connections")
        + section("Addresses of drafts")
        + section("Addresses of teams and people")
        + section("Addresses of masking")
        + section("Addresses of limits")
        + section("Addresses of alerts")
        + section("Addresses of logins")
        + section("Addresses of columns")
        + section("Addresses of the catalog")
        + section("Addresses of SQL")
        + section("Addresses of Druid SQL")
        + section("Addresses of profiles")
        + section("Addresses of compaction")
        + section("Addresses of retention")
        + section("Addresses of the import")
        + section("Addresses of usage")
        + section("Addresses of positions")
        + section("Addresses of backfills")
        + section("Addresses of rewinds")
        + section("Addresses of dead letters")
    ):
        method, _, path = code.partition(" ")
        if path.startswith("/"):
            found.setdefault(path, set()).add(method)
    return found


def test_every_address_is_described_with_its_methods_and_nothing_else() -> None:
    documented = documented_addresses()
    routes = {as_documented(r.pattern): r for r in all_routes() if r.pattern.startswith(SECTIONS_OF_OTHERS)}
    assert len(routes) > 40
    no_faults(differences(documented, routes), "the tables of addresses")
    wrong = (path for path, route in routes.items() if route.methods and documented[path] != route.methods)
    no_faults(wrong, "these addresses have other methods")


def test_addresses_in_examples_lead_somewhere() -> None:
    found = (
        f"{name_of(page)}: {address}"
        for page in PAGES
        if page not in REFERENCE_PAGES
        for address in re.findall(r"/(?:api|druid)/[\w/.-]*\w/?", text_of(page))
        if not address.endswith(".py") and not _leads_somewhere(address)  # a file of the code is no address
    )
    no_faults(found, "no view answers at these addresses")


def _leads_somewhere(address: str) -> bool:
    other = address.rstrip("/") if address.endswith("/") else f"{address}/"
    return _view_at(address) or _view_at(other)


@cache
def _view_at(path: str) -> bool:
    try:
        return resolve(path).func is not fallback
    except Resolver404:
        return False


def test_problem_types_are_all_there() -> None:
    names = {*problems._NAMES.values(), "internal"}
    assert described("Errors") == {f"urn:headgate:problem:{name}" for name in names}
    by_status = {codes(row[0])[0].rpartition(":")[2]: int(row[1]) for row in rows(section("Errors"))}
    assert all(by_status[name] == status for status, name in problems._NAMES.items())


# Words that come back


def test_roles_and_what_they_may() -> None:
    text = section("Permissions")
    assert [row[0] for row in rows(text) if row[0].startswith("See")]
    head = next(line for line in text.splitlines() if line.startswith("| |"))
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == [role.value for role in Role]
    least = {codes(row[0])[-1]: row[1:].index("yes") for row in rows(text)}
    assert least == {action.name: [r.value for r in Role].index(action.value) for action in Action}


def test_states_are_all_there() -> None:
    assert described("Tasks") == {*Status.values, *dict(task_kinds()), *Goal.values}
    assert described("Indexers") == set(get_args(IndexerStatus.model_fields["state"].annotation))
    assert described("Supervisors") == set(State.values)
    assert described("Events") == set(SourceEvent.Kind.values)


def test_detailed_states_are_all_there_with_their_states() -> None:
    documented = [tuple(codes(f"{state} {detail}")) for state, detail, _ in rows(section("Supervisors"))]
    assert sorted(documented) == sorted((detail.state, detail) for detail in Detail)


@pytest.mark.parametrize(
    ("heading", "user"),
    [
        ("Health of a supervisor", "supervisor"),
        ("Problems of home", "home"),
        ("Health of an interval", "compaction"),
        ("Why nothing is shown", "task"),
    ],
)
def test_every_health_code_is_described_with_its_kind_and_label(heading: str, user: str) -> None:
    described_codes = {codes(row[0])[0]: (codes(row[1])[0], row[2]) for row in rows(section(heading)) if len(row) == 4}
    assert described_codes == {code.value: (code.kind.value, code.label) for code in Code if user in code.users}


def test_the_codes_of_alerts_are_kinds_of_rules() -> None:
    assert set(codes_of("alert")) <= set(KINDS)
    assert all(code.users for code in Code)


def test_every_kind_of_health_is_described() -> None:
    assert described("Health") == set(Kind)


def test_outcomes_and_refusals_are_all_there() -> None:
    assert described("Outcomes of a record") == {*fate._EXPLANATION, "unknown"}
    reasons = get_args(QuarantinedRecord.model_fields["reason"].annotation)
    assert set(reasons) <= set(codes(section("Outcomes of a record")))
    refusals = get_args(Refusal.model_fields["code"].annotation)
    assert set(refusals) <= set(codes(section("Addresses for applications")))


def test_the_counters_of_the_example_add_up() -> None:
    text = " ".join(section("Reading a report", page_of("guide.md")).split())
    found = re.search(r"polled ([\d,]+) = published ([\d,]+) \+ duplicates ([\d,]+)", text)
    assert found is not None
    polled, published, duplicates = (int(n.replace(",", "")) for n in found.groups())
    assert Counters(polled=polled, published=published, duplicates=duplicates).ended == polled


# The pages themselves


def test_links_lead_somewhere() -> None:
    faults = (fault for page in PAGES for fault in broken_links(page))
    no_faults(faults, "these links lead nowhere")


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to files and headings of ours that are not there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page))):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        there = file.exists() or file in MADE_BY_TESTS
        if not there or (anchor and anchor not in _anchors_in(file)):
            yield f"{name_of(page)}: {target}"


@cache
def _anchors_in(page: Path) -> set[str]:
    return anchors(text_of(page))


def test_files_of_the_code_are_there() -> None:
    rooms = "controlplane|ingestion|frontend|templates|tests|benchmarks|docker|docs"
    faults = (
        f"{name_of(page)}: {path}"
        for page in PAGES
        for path in re.findall(rf"`((?:{rooms})/[\w./-]*)", text_of(page))
        if not (PROJECT / path).exists()
    )
    no_faults(faults, "pages name files that are not there")


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [PROJECT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)\s#]+\.md)", text_of(page))
        waiting += [(page.parent / t).resolve() for t in targets if not t.startswith("http")]
    no_faults((name_of(page) for page in PAGES if page not in seen), "no link leads to these pages")


def test_specs_in_the_pages_are_good_ones() -> None:
    found = 0
    for page in PAGES:
        for block in re.findall(r"^```json\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL):
            document = json.loads(block)
            if is_segment_task(document):
                parse_segment_task(document)
            elif "ioConfig" in document:
                parse_task_spec(document)
                parse_supervisor_spec(document)
                found += 1
    assert found >= 2


def test_the_readme_begins_with_two_commands() -> None:
    text = (PROJECT / "README.md").read_text()
    first = re.search(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]
    steps = section("How it fits together", text)
    assert len(re.findall(r"^\d+\. ", steps, re.MULTILINE)) == 10


def test_variables_of_compose_are_described() -> None:
    interpolated = dict(re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", (PROJECT / "docker-compose.yml").read_text()))
    table = {codes(row[0])[0]: row[1] for row in rows(section("Variables", page_of("docker.md")))}
    assert set(table) == set(interpolated)
    defaults = {name: rest.removeprefix(":-") for name, rest in interpolated.items()}
    assert table == {
        name: "required" if default.startswith(":?") else f"`{default}`" if default else "none"
        for name, default in defaults.items()
    }
