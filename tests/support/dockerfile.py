"""The Dockerfile, read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each in one line: its name, and the rest as it is written."""
    joined = re.sub(r"\\\n(\s*#.*\n)*", " ", (PROJECT / "Dockerfile").read_text())
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def dockerfile() -> list[list[str]]:
    """The Dockerfile's instructions, words as the shell would split them."""
    return [[name, *shlex.split(rest)] for name, rest in instructions()]


def image_environment() -> dict[str, str]:
    words = [word for instruction, *rest in dockerfile() if instruction == "ENV" for word in rest]
    return dict(word.split("=", 1) for word in words)
