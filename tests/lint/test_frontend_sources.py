"""What templates and scripts must not hold: addresses of other machines, inline scripts, unescaped data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from ingestion.query.functions import FUNCTIONS
from tests.lint.sources import PROJECT, files, name_of, no_faults, places, text_of

STATIC = PROJECT / "frontend" / "static" / "headgate"
ASSETS = PROJECT / "frontend" / "assets"
TEMPLATES = files("*.html", "templates")
OWN = (*files("*.js", "frontend/assets/src"), *files("*.css", "frontend/assets/src"), *TEMPLATES)
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which nobody fetches


def test_no_other_machine_is_named() -> None:
    pattern = r"""(?i)(?:https?:)?//[a-z0-9-]+\.[a-z]"""
    found = (place for path in OWN for place in places(pattern, path, text_of(path).replace(NAMESPACE, "")))
    no_faults(found, "a page fetches nothing from another machine")


def test_a_template_holds_no_script_of_its_own() -> None:
    pattern = r"<script(?![^>]*src=)[^>]*>|\son[a-z]+=|javascript:"
    found = (place for path in TEMPLATES for place in places(pattern, path))
    no_faults(found, "a script is a file of its own")


def test_a_template_escapes_everything() -> None:
    pattern = r"\|\s*safe(?:seq)?\b|autoescape\s+off"
    no_faults((place for path in TEMPLATES for place in places(pattern, path)), "a template escapes everything")


def test_a_template_hides_nothing_that_a_view_gives() -> None:
    """What a tag keeps ``as`` a name holds for all of the page, also for templates that read a view's value there."""
    pattern = r"\{%[^%]*\bas \w+ %\}"
    no_faults((place for path in TEMPLATES for place in places(pattern, path)), "no tag keeps its value as a name")


def test_no_code_declares_data_safe() -> None:
    pattern = r"mark_safe|SafeString\(|format_html\(\s*f"
    found = (place for path in files("*.py", "frontend") for place in places(pattern, path))
    no_faults(found, "no code declares data safe")


def test_every_form_that_posts_has_a_token() -> None:
    found = []
    for path in TEMPLATES:
        forms = len(re.findall(r"""<form[^>]*method="post\"""", text_of(path)))
        if forms != (tokens := text_of(path).count("{% csrf_token %}")):
            found.append(f"{name_of(path)}: {forms} forms that post, {tokens} tokens")
    no_faults(found, "each form that posts has a token")


def test_every_table_has_a_caption_and_headers_with_a_scope() -> None:
    found = []
    for path in TEMPLATES:
        tables, captions = text_of(path).count("<table"), text_of(path).count("<caption")
        found += [f"{name_of(path)}: {tables} tables, {captions} captions"] if tables != captions else []
        found += places(r"<th(?=[ >])(?![^>]*scope=)[^>]*", path)
    no_faults(found, "each table has a caption, and each of its headers a scope")


def test_the_scripts_are_built_and_name_no_source_map() -> None:
    built = {"theme.js", "page.js", "charts.js", "editor.js", "query.js", "headgate.css", "icon.svg"}
    assert built <= {p.name for p in STATIC.iterdir()}
    scripts = [*STATIC.glob("*.js"), *(STATIC / "vendor").glob("*.min.*")]
    no_faults((path.name for path in scripts if "sourceMappingURL" in text_of(path)), "a script names no source map")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digests(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    return {str(path.relative_to(folder)): digest(path.read_bytes()) for path in paths if path.is_file()}


def test_what_is_built_is_built_of_these_sources() -> None:
    """Without Node: the build writes down what it was made of, and what it made."""
    built = json.loads((STATIC / "built.json").read_text())
    config = [ASSETS / name for name in ("build.mjs", "package.json", "package-lock.json")]
    sources = digests(ASSETS, [*config, *(ASSETS / "src").rglob("*")])
    assert built["sources"] == sources, "run npm run build in frontend/assets: its sources have changed"
    made = digests(STATIC, STATIC.rglob("*"))
    del made["built.json"]
    assert built["files"] == made, "run npm run build in frontend/assets: these are not the files that it wrote"


def test_what_is_told_of_a_specs_fields_is_what_the_reference_says() -> None:
    """The rows of the reference's tables are sources of the build, too."""
    read = json.loads((STATIC / "built.json").read_text())["reference"]
    assert len(read) > 5
    changed = (f"docs/reference/{name}.md" for name, rows in read.items() if digest_of_rows(name) != rows)
    no_faults(changed, "run npm run build in frontend/assets: these pages have changed")


def test_the_functions_that_the_editor_offers_are_those_that_sql_allows() -> None:
    offered = json.loads((STATIC / "built.json").read_text())["functions"]
    allowed = {name for name in FUNCTIONS if name.isidentifier()}
    assert set(offered) == allowed, "run npm run build in frontend/assets: the allow-list has changed"


def digest_of_rows(name: str) -> str:
    lines = text_of(PROJECT / "docs" / "reference" / f"{name}.md").split("\n")
    return digest("\n".join(line for line in lines if line.startswith("| `")).encode())


def test_what_is_vendored_is_pinned_and_its_licence_is_kept() -> None:
    packages = json.loads((ASSETS / "package.json").read_text())["devDependencies"]
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    notice = (PROJECT / "NOTICE").read_text()
    loose = [name for name, version in packages.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)]
    no_faults(loose, "package.json pins each package to one version")
    del packages["esbuild"]  # builds, but is not in what is built
    lacking = [f"{name} {pin}" for name, pin in packages.items() if f"\n{name} {pin} (" not in f"\n{licences}"]
    no_faults(lacking, "LICENSES.txt has the licence of each package")
    named = ("Bootstrap", "ECharts", "CodeMirror", "htmx")
    no_faults((name for name in named if name not in notice), "NOTICE names each library")


def test_the_lock_file_names_no_host() -> None:
    assert "resolved" not in (ASSETS / "package-lock.json").read_text()
