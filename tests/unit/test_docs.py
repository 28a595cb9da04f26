"""The documentation says what the code does: every field, setting, command, address and state, with its default."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from django.urls import Resolver404, resolve

from controlplane.api import problems
from controlplane.api.fallback import fallback
from controlplane.segments.models import SourceEvent
from controlplane.segments.selectors import fate
from controlplane.supervisors import decide, topics
from controlplane.supervisors.models import State
from controlplane.supervisors.standing import Code, Kind
from controlplane.tasks.diagnosis import UNSTORED
from controlplane.tasks.models import Goal, Status, task_kinds
from controlplane.teams.models import Role
from controlplane.teams.permissions import Action
from ingestion.specs import (
    parse_supervisor_spec,
    parse_task_spec,
)
from ingestion.specs.counters import Counters
from ingestion.specs.protocol import IndexerStatus, QuarantinedRecord, Refusal
from ingestion.specs.segment_tasks import is_segment_task, parse_segment_task
from tests.support import pages
from tests.support.pages import anchors, codes, first_codes, rows, without_code
from tests.support.routes import all_routes

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
PAGES = sorted([*PROJECT.glob("*.md"), *DOCS.rglob("*.md")])
SECTIONS_OF_OTHERS = ("api/", "druid/", "status", "internal/", "healthz", "readyz")
# Written by the browser test, which takes it from the page itself.
MADE_BY_TESTS = {DOCS / "images" / "timeline.png"}


def text_of(page: str) -> str:
    return (DOCS / page).read_text()


REFERENCE_PAGES = sorted((DOCS / "reference").glob("*.md"))
REFERENCE = "\n".join(page.read_text() for page in REFERENCE_PAGES)
# A page that is longer holds two subjects.
LONGEST_PAGE_WORDS = 2_400


def section(title: str, text: str = REFERENCE) -> str:
    return pages.section(title, text)


def described(title: str) -> set[str]:
    return set(first_codes(section(title)))


def test_a_page_of_the_reference_has_one_subject() -> None:
    titles = re.findall(r"^#+ (.+)$", without_code(REFERENCE), re.MULTILINE)
    assert len(titles) == len(set(titles)), "the checks find a section by its title"
    for page in REFERENCE_PAGES:
        assert len(page.read_text().split()) <= LONGEST_PAGE_WORDS, (
            f"{page.name} holds more than one subject: cut it up"
        )


def test_the_contents_page_lists_every_page_and_section() -> None:
    listed = set(re.findall(r"\]\(reference/([^)]+)\)", text_of("reference.md")))
    for page in REFERENCE_PAGES:
        titles = re.findall(r"^## (.+)$", without_code(page.read_text()), re.MULTILINE)
        expected = {page.name, *(f"{page.name}#{anchor}" for anchor in pages.anchors_of(titles))}
        assert expected <= listed, f"{expected - listed} can't be found from docs/reference.md"


# Settings and commands


def code_of(*packages: str, having: str = "") -> Iterator[ast.Module]:
    """The files whose text matches: to parse all of them takes a second."""
    for package in packages:
        for file in (PROJECT / package).rglob("*.py"):
            if re.search(having, text := file.read_text()):
                yield ast.parse(text)


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


SETTINGS = settings_in_code()
SETTING_ROWS = {codes(row[0])[0]: row for row in rows(section("Settings"))}


def test_every_setting_is_described_and_nothing_else() -> None:
    assert len(SETTINGS) > 25
    named = {c for c in codes(section("Settings")) if re.fullmatch(r"HEADGATE_[A-Z_]+|DATABASE_URL", c)}
    assert named == set(SETTINGS)


@pytest.mark.parametrize("name", sorted(n for n, default in SETTINGS.items() if isinstance(default, ast.Constant)))
def test_a_setting_has_its_default(name: str) -> None:
    default = SETTINGS[name]
    assert isinstance(default, ast.Constant)
    assert SETTING_ROWS[name][1] == (f"`{default.value!s}`" if default.value != "" else "none")


def test_settings_without_a_default_are_required_or_off() -> None:
    assert SETTING_ROWS["DATABASE_URL"][1] == SETTING_ROWS["HEADGATE_SECRET_KEY"][1] == "required"
    for name in ("HEADGATE_DEBUG", "HEADGATE_INSECURE_COOKIES"):
        assert SETTINGS[name] is None
        assert SETTING_ROWS[name][1] == "`0`"


def test_no_page_names_a_setting_that_there_is_not() -> None:
    code = "".join(file.read_text() for file in (PROJECT / "headgate").rglob("*.py"))
    of_users = set(re.findall(r"\"(HEADGATE_[A-Z_]+)\"", code))  # read where Spark applications run
    for page in [*PAGES, PROJECT / ".env.example"]:
        named = set(re.findall(r"HEADGATE_[A-Z_]*[A-Z]", page.read_text()))
        unknown = {n for n in named - of_users if n.removesuffix("_FILE") not in SETTINGS}
        assert not unknown, f"{page.name} names {unknown}"


def test_every_make_target_is_described_and_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert {c.removeprefix("make ") for c in described("Commands")} == targets
    for page in PAGES:
        text = page.read_text()
        named = set(re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", text, re.MULTILINE))
        assert {a or b for a, b in named} <= targets, page.name


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
        + section("Addresses of compaction")
        + section("Addresses of retention")
        + section("Addresses of the import")
    ):
        method, _, path = code.partition(" ")
        if path.startswith("/"):
            found.setdefault(path, set()).add(method)
    return found


def test_every_address_is_described_with_its_methods_and_nothing_else() -> None:
    documented = documented_addresses()
    routes = {as_documented(r.pattern): r for r in all_routes() if r.pattern.startswith(SECTIONS_OF_OTHERS)}
    assert len(routes) > 40
    assert set(documented) == set(routes)
    for path, route in routes.items():
        assert not route.methods or documented[path] == route.methods, path


@pytest.mark.parametrize("page", [p for p in PAGES if p not in REFERENCE_PAGES], ids=lambda page: page.name)
def test_addresses_in_examples_lead_somewhere(page: Path) -> None:
    found = re.findall(r"/(?:api|druid)/[\w/.-]*\w/?", page.read_text())
    for path in (path for path in found if not path.endswith(".py")):  # a file of the code is no address
        other = path.rstrip("/") if path.endswith("/") else f"{path}/"
        assert _view_at(path) or _view_at(other), f"{page.name}: {path}"


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


def test_detailed_states_are_all_there() -> None:
    source = "".join(Path(str(module.__file__)).read_text() for module in (decide, topics))
    named = set(re.findall(r'"([A-Z][A-Z_]{5,})"', source)) | {"PENDING"}
    documented = {c for row in rows(section("Supervisors")) for cell in row[:2] for c in codes(cell)}
    assert named <= documented
    assert documented <= named | set(State.values)


def test_reasons_are_all_there() -> None:
    codes_in_code: set[str] = set()
    for tree in code_of("controlplane/tasks", "controlplane/supervisors"):
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="Reason"), args=[ast.Constant(value=code), *_]):
                    codes_in_code.add(str(code))
    ends = {code for code, _ in UNSTORED.values()}
    text = section("Why nothing is shown")
    assert described("Why nothing is shown") == codes_in_code | ends
    assert {f"all_{end}" for end in ends} <= set(codes(text))


def test_every_standing_is_described() -> None:
    text = section("How a supervisor stands")
    assert described("How a supervisor stands") | {"stopping"} == {*Kind, *Code}
    assert "stopping" in codes(text)


def test_outcomes_and_refusals_are_all_there() -> None:
    assert described("Outcomes of a record") == {*fate._EXPLANATION, "unknown"}
    reasons = get_args(QuarantinedRecord.model_fields["reason"].annotation)
    assert set(reasons) <= set(codes(section("Outcomes of a record")))
    refusals = get_args(Refusal.model_fields["code"].annotation)
    assert set(refusals) <= set(codes(section("Addresses for applications")))


def test_the_counters_of_the_example_add_up() -> None:
    text = " ".join(section("Reading a report", text_of("guide.md")).split())
    found = re.search(r"polled ([\d,]+) = published ([\d,]+) \+ duplicates ([\d,]+)", text)
    assert found is not None
    polled, published, duplicates = (int(n.replace(",", "")) for n in found.groups())
    assert Counters(polled=polled, published=published, duplicates=duplicates).ended == polled


# The pages themselves


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists() or file in MADE_BY_TESTS, f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file.read_text()), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_files_of_the_code_are_there(page: Path) -> None:
    rooms = "controlplane|ingestion|frontend|templates|tests|benchmarks|docker|docs"
    for path in re.findall(rf"`((?:{rooms})/[\w./-]*)", page.read_text()):
        assert (PROJECT / path).exists(), f"{page.name} names {path}, which is not there"


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [PROJECT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text())
        waiting += [(page.parent / t).resolve() for t in targets if not t.startswith("http")]
    assert set(PAGES) <= seen


def test_specs_in_the_pages_are_good_ones() -> None:
    found = 0
    for page in PAGES:
        for block in re.findall(r"^```json\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
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
    table = {codes(row[0])[0]: row[1] for row in rows(section("Variables", text_of("docker.md")))}
    assert set(table) == set(interpolated)
    for name, rest in interpolated.items():
        default = rest.removeprefix(":-")
        expected = "required" if rest.startswith(":?") else f"`{default}`" if default else "none"
        assert table[name] == expected, name
