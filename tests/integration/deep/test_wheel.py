"""The wheel as a stranger installs it: what is in it, and that its few dependencies are all that it needs.

Starts no service. A checkout would not show a file that the wheel lacks, nor a package that only the server brings.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headgate.version import VERSION

PROJECT = Path(__file__).resolve().parents[3]
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
_CONNECTOR = """
import headgate, headgate.sharegroup.session
print(headgate.register.__name__, headgate.read.__name__, headgate.__file__)
"""
_TEMPLATES = """
import django
django.setup()
from django.contrib.staticfiles import finders
from django.template.loader import get_template
print(get_template("base.html").origin.name, finders.find("headgate/headgate.css"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what its requirements name, without the extra ``server``."""
    folder = tmp_path_factory.mktemp("empty")
    install(wheel, folder)
    link_needed(folder, DECLARED["dependencies"])
    return folder


def install(wheel: Path, folder: Path) -> None:
    """Into a new virtual environment, with the pip of this one: to give it its own takes longer than all the rest."""
    venv.create(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)


def link_needed(folder: Path, requirements: list[str]) -> None:
    """Link the packages of this environment that the requirements need, as if an index had given them."""
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed(requirements):
        files = importlib.metadata.files(name) or []
        for top in sorted({file.parts[0] for file in files} - {".."}):
            target = site / top
            if not target.exists() and top != "__pycache__":
                target.symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(top))))


def needed(requirements: list[str]) -> set[str]:
    """The names of all packages that they need, extras included."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            identity = (canonicalize_name(requirement.name), extra)
            if identity in found:
                continue
            found.add(identity)
            waiting += list(_of(requirement.name, extra))
    return {name for name, _ in found}


def _of(name: str, extra: str) -> Iterator[Requirement]:
    for text in importlib.metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def run(folder: Path, *command: str, code: int = 0, environment: Mapping[str, str] | None = None) -> str:
    """What a program of the virtual environment says, far from the checkout."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEADGATE"))}
    done = subprocess.run(
        [str(folder / "bin" / command[0]), *command[1:]],
        cwd=folder,
        env={**plain, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_it_holds_every_package_with_its_files(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in ("headgate", "controlplane", "ingestion", "frontend"):
        files = {
            str(path.relative_to(PROJECT))
            for path in (PROJECT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and "assets" not in path.parts
        }
        assert files <= names, sorted(files - names)[:10]
    templates = {f"frontend/{p.relative_to(PROJECT)}" for p in (PROJECT / "templates").rglob("*") if p.is_file()}
    assert templates and templates <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/", "frontend/assets/"))]


def test_its_few_dependencies_are_enough(empty: Path) -> None:
    assert run(empty, "headgate", "--version") == f"headgate {VERSION}\n"
    assert "apply" in run(empty, "headgate", "--help")
    assert "headgate[server]" in run(empty, "headgate", "status", code=1)
    assert run(empty, "python", "-c", "from headgate.client import Client; print(Client.__name__)") == "Client\n"
    register, read, place = run(empty, "python", "-c", _CONNECTOR).split()
    assert (register, read) == ("register", "read") and place.startswith(str(empty))
    assert not needed(DECLARED["dependencies"]) & {"django", "celery", "duckdb", "psycopg"}


def test_the_server_finds_its_templates_and_static_files(wheel: Path, tmp_path: Path) -> None:
    install(wheel, tmp_path)
    link_needed(tmp_path, DECLARED["dependencies"] + DECLARED["optional-dependencies"]["server"])
    settings = {
        "DJANGO_SETTINGS_MODULE": "controlplane.config.settings",
        "DATABASE_URL": "postgresql:///none",
        "HEADGATE_SECRET_KEY": "a key for tests only, and long enough to be taken for one",
    }
    template, static = run(tmp_path, "python", "-c", _TEMPLATES, environment=settings).split()
    assert template.startswith(str(tmp_path)) and template.endswith("frontend/templates/base.html")
    assert static.startswith(str(tmp_path))
    told = run(tmp_path, "headgate", "status", code=3, environment={"HOME": str(tmp_path / "home")})
    assert "`headgate up` starts the stack" in told
