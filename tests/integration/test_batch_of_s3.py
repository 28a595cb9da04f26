"""Objects of S3 that a batch task reads: below the locations of the site, on a real server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ingestion.batch.errors import InputChanged, InputRefused
from ingestion.batch.inputs import Inputs
from ingestion.batch.splits import plan_splits
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.batch_protocol import Reachable
from tests.support.batch_files import FORMS
from tests.support.batch_run import CSV, Run, a_table, is_same, spec_of
from tests.support.s3 import BUCKET, CREDENTIALS, S3Server, s3_server

ROWS = a_table(900)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def folder(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Three objects in a folder of one's own, and one beside it."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    name = f"in-{random.getrandbits(40)}"
    for key, rows in (
        (f"{name}/2025/a.csv", ROWS[:300]),
        (f"{name}/2025/b.csv", ROWS[300:600]),
        (f"{name}/2026-c.csv", ROWS[600:]),
        (f"{name}x/d.csv", ROWS[:9]),
    ):
        put(server, tmp_path, key, rows)
    return name


def put(server: S3Server, tmp_path: Path, key: str, rows: pd.DataFrame) -> None:
    (tmp_path / "written").write_text(rows.to_csv(index=False))
    above, _, name = key.rpartition("/")
    open_deep_storage(server.location(above)).put(tmp_path / "written", name)


def run(server: S3Server, tmp_path: Path, folder: str, source: dict[str, Any], size: int = 10_000) -> Run:
    reachable = Reachable(locations=[server.location("elsewhere"), server.location(folder)])
    return Run(spec_of({"type": "s3", **source}, CSV), tmp_path, size=size, reachable=reachable)


def test_objects_are_found_by_address_by_key_and_by_how_they_begin(
    server: S3Server, tmp_path: Path, folder: str
) -> None:
    begin = f"s3://{BUCKET}/{folder}"
    cut = run(server, tmp_path, folder, {"prefixes": [f"{begin}/2025/", f"{begin}/2026-"]}, size=2_000)
    assert len(cut.splits) > 3
    assert is_same(cut.stored(tmp_path), ROWS)
    by_key = [{"bucket": BUCKET, "path": f"{folder}/2025/a.csv"}]
    assert run(server, tmp_path, folder, {"objects": by_key}).summed("processed") == 300
    by_address = {"uris": [f"{begin}/2025/b.csv", f"{begin}/2025/b.csv"]}
    assert run(server, tmp_path, folder, by_address).summed("processed") == 300
    assert run(server, tmp_path, folder, {"prefixes": [f"{begin}/"]}).summed("processed") == 900


@pytest.mark.parametrize("form", FORMS)
def test_files_that_are_read_from_their_end_or_by_blocks(
    server: S3Server, tmp_path: Path, folder: str, form: str
) -> None:
    (tmp_path / "written").write_bytes(FORMS[form](ROWS))
    open_deep_storage(server.location(folder)).put(tmp_path / "written", "a.file")
    source = {"type": "s3", "uris": [f"s3://{BUCKET}/{folder}/a.file"]}
    read = Run(
        spec_of(source, {"type": form}), tmp_path, size=10_000, reachable=Reachable(locations=[server.location(folder)])
    )
    assert is_same(read.stored(tmp_path), ROWS)


def test_nothing_else_is_read(server: S3Server, tmp_path: Path, folder: str) -> None:
    for source in (
        {"uris": [f"s3://{BUCKET}/{folder}x/d.csv"]},
        {"prefixes": [f"s3://{BUCKET}/{folder}"]},
        {"uris": [f"s3://other-bucket/{folder}/2025/a.csv"]},
    ):
        with pytest.raises(InputRefused, match="is not below the locations of HEADGATE_INPUT_LOCATIONS"):
            run(server, tmp_path, folder, source)
    with pytest.raises(InputRefused, match="nothing to read"):
        run(server, tmp_path, folder, {"prefixes": [f"s3://{BUCKET}/{folder}/2027"]})


def test_an_object_that_is_not_there_or_has_changed_ends_the_task(
    server: S3Server, tmp_path: Path, folder: str
) -> None:
    address = f"s3://{BUCKET}/{folder}/2025/a.csv"
    with pytest.raises(InputRefused, match=r"none\.csv can't be read"):
        run(server, tmp_path, folder, {"uris": [address.replace("a.csv", "none.csv")]})
    spec = spec_of({"type": "s3", "uris": [address]}, CSV)
    inputs = Inputs(Reachable(locations=[server.location(folder)]))
    found = plan_splits(spec, inputs, 1)[0].parts[0].file
    assert found is not None
    open_deep_storage(server.location(f"{folder}/2025")).delete("a.csv")
    put(server, tmp_path, f"{folder}/2025/a.csv", ROWS[:10])
    with pytest.raises(InputChanged, match="has changed since the task began"), inputs.open_input(found):
        pass


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({}, "give one of uris, prefixes and objects"),
        ({"uris": ["https://bucket/x"]}, "must be s3://bucket/key"),
        ({"prefixes": ["s3://bucket/a/../b"]}, "must be s3://bucket/key"),
        ({"uris": ["s3://bucket/x"], "objectGlob": "*.json"}, "objectGlob"),
        ({"uris": ["s3://bucket/x"], "properties": {"accessKeyId": "a"}}, "the site's settings define"),
        (
            {"uris": ["s3://bucket/x"], "endpointConfig": {"url": "http://x"}},
            "the site's settings define",
        ),
    ],
)
def test_what_is_not_supported_of_s3_is_refused_by_name(source: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of({"type": "s3", **source}, CSV)
