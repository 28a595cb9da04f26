"""What templates and scripts must not hold: addresses of other machines, inline scripts, unescaped data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "frontend" / "static" / "headgate"
ASSETS = ROOT / "frontend" / "assets"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
OWN = sorted([*(ASSETS / "src").rglob("*.js"), *(ASSETS / "src").rglob("*.css"), *TEMPLATES])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_no_other_machine_is_named(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, which nobody fetches
    assert re.findall(r"""(?:https?:)?//[a-z0-9-]+\.[a-z]""", text, re.IGNORECASE) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_holds_no_script_of_its_own(path: Path) -> None:
    text = path.read_text()
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    assert re.findall(r"\son[a-z]+=", text) == []
    assert "javascript:" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_escapes_everything(path: Path) -> None:
    assert re.findall(r"\|\s*safe(?:seq)?\b|autoescape\s+off", path.read_text()) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_hides_nothing_that_a_view_gives(path: Path) -> None:
    """What a tag keeps ``as`` a name holds for all of the page, also for templates that read a view's value there."""
    assert re.findall(r"\{%[^%]*\bas \w+ %\}", path.read_text()) == []


@pytest.mark.parametrize("path", sorted((ROOT / "frontend").rglob("*.py")), ids=name_of)
def test_no_code_declares_data_safe(path: Path) -> None:
    assert re.findall(r"mark_safe|SafeString\(|format_html\(\s*f", path.read_text()) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_every_form_that_posts_has_a_token(path: Path) -> None:
    text = path.read_text()
    assert len(re.findall(r"""<form[^>]*method="post\"""", text)) == text.count("{% csrf_token %}")


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_every_table_has_a_caption_and_headers_with_a_scope(path: Path) -> None:
    text = path.read_text()
    assert text.count("<table") == text.count("<caption")
    assert all("scope=" in tag for tag in re.findall(r"<th[ >][^>]*", text))


def test_the_scripts_are_built_and_name_no_source_map() -> None:
    built = {"theme.js", "page.js", "charts.js", "editor.js", "headgate.css", "icon.svg"}
    assert built <= {p.name for p in STATIC.iterdir()}
    for path in [*STATIC.glob("*.js"), *(STATIC / "vendor").glob("*.min.*")]:
        assert "sourceMappingURL" not in path.read_text(), path.name


def test_copied_files_are_those_of_the_sources() -> None:
    for path in (ASSETS / "src" / "static").iterdir():
        assert (STATIC / path.name).read_bytes() == path.read_bytes(), f"run npm run build: {path.name} is old"


def test_what_is_vendored_is_pinned_and_its_licence_is_kept() -> None:
    packages = json.loads((ASSETS / "package.json").read_text())["devDependencies"]
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    notice = (ROOT / "NOTICE").read_text()
    for name, version in packages.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        if name != "esbuild":  # builds, but is not in what is built
            assert re.search(rf"^{re.escape(name)} {re.escape(version)} \(", licences, re.MULTILINE), name
    for name in ("Bootstrap", "ECharts", "CodeMirror", "htmx"):
        assert name in notice


def test_the_lock_file_names_no_host() -> None:
    assert "resolved" not in (ASSETS / "package-lock.json").read_text()
