"""Processes that have no use for pandas do not load it: it takes a third of their start, and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.specs.messages.checking import CheckOrder
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import spec_for
from tests.support.processes import command_lines

SCHEMA = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t"}})
JSON = {"type": "json"}


def check_order() -> CheckOrder:
    spec = parse_task_spec(spec_for("flights")).spec
    return CheckOrder(
        data_schema=spec.dataSchema, input_format=spec.ioConfig.inputFormat, schema_folder="", reads_files=True
    )


def sample_order() -> object:
    io_config = {"inputSource": {"type": "inline", "data": '{"a": 1}'}, "inputFormat": JSON}
    return parse_sampler_spec({"type": "inline", "spec": {"ioConfig": io_config}}).order


@pytest.mark.parametrize(
    ("module", "order"),
    [("ingestion.task.check_spec", check_order()), ("ingestion.task.sampler", sample_order())],
    ids=["check_spec", "sampler"],
)
def test_processes_that_answer_once(module: str, order: CheckOrder) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", module],
        input=order.model_dump_json() + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pyarrow" in loaded
    assert "pandas._libs" not in loaded


def test_workers_of_spark() -> None:
    """What the daemon's workers are forked from, up to its loop, makes an array of a list."""
    code = """
import pyarrow, pyspark.daemon, runpy, sys
pyspark.daemon.manager = lambda: print(pyarrow.array([1]).to_pylist(), "pandas" in sys.modules)
runpy.run_module("ingestion.spark.daemon", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["[1]", "False"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has loaded is told by Linux alone")
@pytest.mark.parametrize("module", ["ingestion.decode.child_process", "ingestion.task.decoder_child"])
def test_a_decoder(module: str) -> None:
    with IsolatedDecoder(SCHEMA, child_module=module) as decoder:
        assert decoder.decode([b'{"t": 0, "a": 1}', b'{"t": 0, "a": "x"}']).rows.num_rows == 2
        [child] = [c for c, line in command_lines(psutil.Process().children()) if module in line.split()]
        loaded = Path(f"/proc/{child.pid}/maps").read_text()
    assert "/pyarrow/" in loaded
    assert "/pandas/" not in loaded
