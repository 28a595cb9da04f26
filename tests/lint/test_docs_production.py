"""docs/production.md: what it tells people to write and run fits the files of this version."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.lint.sources import PROJECT, no_faults, text_of

PAGE = text_of(PROJECT / "docs" / "production.md")
BLOCKS = re.findall(r"^ *```(\w+)\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
LONGEST_PAGE_WORDS = 2000
# What other programs read.
OTHERS = {
    "PATH",
    "PYTHONPATH",
    "DJANGO_SETTINGS_MODULE",
    "PWD",
    "AWS_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
}


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text_of(PROJECT / "docker-compose.yml"))
    return loaded


def test_the_page_is_short_and_its_steps_are_sections() -> None:
    assert len(PAGE.split()) <= LONGEST_PAGE_WORDS
    sections = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)
    assert [int(number) for number in sections] == list(range(1, 12))
    linked = set(re.findall(r"\(#(\d+)-", PAGE.split("\n## ")[0]))
    assert linked == set(sections)


def test_overrides_name_services_that_get_these_variables() -> None:
    overrides = [yaml.safe_load(body) for kind, body in BLOCKS if kind == "yaml"]
    assert overrides
    services = compose()["services"]
    faults = [
        f"{name}: {variable}"
        for override in overrides
        for name, service in override["services"].items()
        for variable in service["environment"]
        if name not in services or variable not in services[name]["environment"]
    ]
    no_faults(faults, "docker-compose.yml has no such service, or gives it no such variable")


def test_commands_of_compose_name_services() -> None:
    named = re.findall(r"docker compose (?:stop|exec) ([a-z -]+?)(?:`| headgate)", PAGE)
    assert named
    unknown = {word for words in named for word in words.split()} - set(compose()["services"])
    no_faults(sorted(unknown), "docker-compose.yml has no such service")


def test_settings_are_those_of_the_reference() -> None:
    known = set(re.findall(r"`(\w+)`", text_of(PROJECT / "docs" / "reference" / "settings.md"))) | OTHERS
    named = set(re.findall(r"\bHEADGATE_[A-Z_]+", PAGE))
    named |= {
        name for kind, body in BLOCKS if kind == "sh" for name in re.findall(r"^ *([A-Z_]+)=", body, re.MULTILINE)
    }
    no_faults(sorted(named - known), "no settings of docs/reference/settings.md")


def test_commands_of_manage_exist() -> None:
    named = set(re.findall(r"(?:manage\.py|headgate manage) (\w+)", PAGE)) - {"migrate"}
    assert {"doctor", "ensure_login", "verify_segments"} <= named
    found = {path.stem for path in (PROJECT / "controlplane").glob("*/management/commands/*.py")}
    no_faults(sorted(named - found), "manage.py has no such command")


def test_roles_are_those_of_the_entrypoint() -> None:
    script = text_of(PROJECT / "docker" / "entrypoint.sh")
    for role in ("web", "worker", "beat", "migrate", "spark-master", "spark-worker"):
        assert f"\n    {role})" in script
        assert role in PAGE
