"""What templates and scripts must not hold: addresses of other machines, inline scripts, unescaped data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
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
    for name, rows in read.items():
        lines = (ROOT / "docs" / "reference" / f"{name}.md").read_text().split("\n")
        said = digest("\n".join(line for line in lines if line.startswith("| `")).encode())
        assert said == rows, f"run npm run build in frontend/assets: docs/reference/{name}.md has changed"


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
