"""Which batch tasks an application serves that waited: what this host sees of their input decides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from controlplane.tasks import small_batches
from controlplane.tasks.models import Task
from ingestion.specs.tasks.batch import parse_batch_spec
from tests.integration.test_spares import batch_spec

MEBI = 1024 * 1024


def is_small(source: dict[str, Any], slots: int = 1, **tuning: Any) -> bool:
    document = batch_spec(inputSource=source)
    document["spec"]["tuningConfig"] = {"type": "index_parallel", **tuning}
    if source["type"] == "druid":
        document["spec"]["dataSchema"]["timestampSpec"] = {"column": "__time", "format": "millis"}
        del document["spec"]["ioConfig"]["inputFormat"]
    parse_batch_spec(document)
    return small_batches.is_small(Task(pk="b", kind=Task.Kind.INDEX_PARALLEL, spec=document, slots=slots))


def files(folder: Path, *sizes: int) -> dict[str, Any]:
    for number, size in enumerate(sizes):
        with (folder / f"{number}.json").open("wb") as file:
            file.truncate(size)
    return {"type": "local", "baseDir": str(folder), "filter": "*.json"}


@pytest.mark.parametrize(
    ("sizes", "slots", "small"),
    [
        ((4 * MEBI,), 1, True),
        ((4 * MEBI + 1,), 1, False),
        ((4 * MEBI, 4 * MEBI), 2, True),  # a slot reads each
        ((16 * MEBI, 1), 32, False),  # however many slots
        ((1,) * 100, 1, True),
        ((1,) * 101, 1, False),
        ((), 1, True),  # it says that there is nothing to read
    ],
    ids=str,
)
def test_by_bytes_and_files(tmp_path: Path, sizes: tuple[int, ...], slots: int, small: bool) -> None:
    assert is_small(files(tmp_path, *sizes), slots) is small


def test_only_files_count_that_the_wildcard_names(tmp_path: Path) -> None:
    source = files(tmp_path, 5 * MEBI)
    assert not is_small(source)
    assert is_small({**source, "filter": "*.csv"})
    os.rename(tmp_path / "0.json", tmp_path / "[0].json")
    assert not is_small({**source, "filter": "[0].json"})


def test_files_by_name_and_below_other_folders(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    source = files(below, 3 * MEBI)
    named = {"type": "local", "files": [str(below / "0.json"), str(tmp_path / "gone")]}
    assert is_small({**source, "baseDir": str(tmp_path)}) and is_small(named)
    assert not is_small({"type": "combining", "delegates": [source, named]})  # 6 MiB


def test_a_folder_with_many_names_is_not_gone_through(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / str(number)).touch()
    assert not is_small(files(tmp_path, 1))


@pytest.mark.parametrize(
    "source",
    [
        {"type": "http", "uris": ["https://host.example/a.json"]},
        {"type": "s3", "uris": ["s3://bucket/a.json"]},
        {"type": "druid", "dataSource": "wiki", "interval": "2025-01-01/2025-01-02"},
    ],
    ids=lambda source: str(source["type"]),
)
def test_what_lies_elsewhere_may_be_large(source: dict[str, Any]) -> None:
    assert not is_small(source)


@pytest.mark.parametrize(
    "tuning",
    [
        {"maxRowsPerSegment": 99_999},
        {"splitHintSpec": {"type": "maxSize", "maxNumFiles": 1}},
        {"forceGuaranteedRollup": True},
    ],
    ids=str,
)
def test_what_is_cut_into_many_parts_is_not_small(tmp_path: Path, tuning: dict[str, Any]) -> None:
    source = files(tmp_path, 1)
    assert is_small(source) and not is_small(source, **tuning)


def test_a_spec_that_cannot_be_read_any_more_is_not_small() -> None:
    assert not small_batches.is_small(Task(pk="b", kind=Task.Kind.INDEX_PARALLEL, spec={"type": "index"}, slots=1))
