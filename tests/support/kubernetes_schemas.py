"""Kubernetes' own schemas, with what holds documents against them, in an environment of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.support.own_environment import python_with

KUBERNETES = "1.37.0"
_VALIDATE = """
import sys, yaml, kubernetes_validate
for document in yaml.safe_load_all(sys.stdin):
    kubernetes_validate.validate(document, sys.argv[1], strict=True)
    print(document["kind"])
"""


def kubernetes_schemas() -> Path:
    """Its Python."""
    return python_with("kubernetes-validate", Path(__file__).with_suffix(".txt"))


def check_documents(documents: list[dict[str, Any]]) -> None:
    """Fails unless Kubernetes takes each of them."""
    command = [str(kubernetes_schemas()), "-c", _VALIDATE, KUBERNETES.rpartition(".")[0]]
    done = subprocess.run(command, input=yaml.safe_dump_all(documents), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [document["kind"] for document in documents]
