"""What `make lint` runs, each command beside the other tests instead of before them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
_RECIPE = re.compile(r"^lint:.*\n((?:\t.+\n)+)", re.MULTILINE)


def commands() -> list[str]:
    """The lines of the Makefile's recipe, for this very Python."""
    recipe = _RECIPE.search((PROJECT / "Makefile").read_text())
    assert recipe is not None
    return [line.strip().replace("$(BIN)", str(Path(sys.executable).parent)) for line in recipe[1].splitlines()]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.split("/")[-1])
def test_lint(command: str) -> None:
    assert "$" not in command
    done = subprocess.run(command, shell=True, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{command}\n{done.stdout}{done.stderr}", pytrace=False)
