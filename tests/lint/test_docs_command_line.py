"""The pages of the command line and the Python client say what the code has."""

from __future__ import annotations

import re

import yaml

from headgate import client
from headgate.cli import stack
from headgate.cli.kinds import KINDS
from headgate.cli.main import COMMANDS
from headgate.cli.manifests import KINDS as KINDS_OF_FILES
from headgate.client.errors import _BY_STATUS, ClientError
from headgate.version import VERSION
from tests.lint.sources import PROJECT, differences, no_faults, text_of
from tests.support.pages import codes, first_codes, rows, section

REFERENCE = PROJECT / "docs" / "reference"
PAGE = text_of(REFERENCE / "command-line.md")
CLIENT_PAGE = text_of(REFERENCE / "python-client.md")


def test_every_command_is_described_and_nothing_else() -> None:
    described = [code for row in rows(section("Commands of headgate", PAGE)) for code in codes(row[0])]
    no_faults(differences(described, {**COMMANDS, **stack.COMMANDS}), "the table of commands")


def test_every_kind_is_described() -> None:
    (line,) = re.findall(r"^Kinds of `get` and `describe`: (.*)$", PAGE, re.MULTILINE)
    assert codes(line) == [kind.name for kind in KINDS]
    assert tuple(first_codes(section("Files for apply", PAGE))) == KINDS_OF_FILES


def test_every_variable_is_described() -> None:
    code = "".join(text_of(path) for path in sorted((PROJECT / "headgate" / "cli").glob("*.py")))
    named = set(re.findall(r"\"(HEADGATE_[A-Z_]+)\"", code)) | {"HEADGATE_URL"}
    assert set(first_codes(section("Profiles", PAGE))) == named


def test_every_error_is_described_with_its_status() -> None:
    documented = {codes(row[0])[0]: row[1] for row in rows(section("Errors and retries", CLIENT_PAGE))}
    kinds = {n for n, kind in vars(client).items() if isinstance(kind, type) and issubclass(kind, ClientError)}
    assert set(documented) == kinds - {"ClientError"}
    for status, kind in _BY_STATUS.items():
        assert str(status) in documented[kind.__name__].split(", ")


def test_examples_in_yaml_can_be_read() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    documents = [d for block in blocks for d in yaml.safe_load_all(block)]
    assert [d["kind"] for d in documents if "kind" in d] == ["connection", "retention"]


def test_the_version_is_that_of_the_project() -> None:
    assert f'\nversion = "{VERSION}"\n' in text_of(PROJECT / "pyproject.toml")
