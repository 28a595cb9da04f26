"""A storage that breaks off while an object is read: that is no fault of the object, and is tried again."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from ingestion.batch.containers import read_container_rows
from ingestion.batch.files import InputFile
from ingestion.batch.inputs import Inputs
from ingestion.batch.lines import open_part, read_lines
from ingestion.batch.splits import Part
from ingestion.segments.errors import DeepStorageError
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.batch_protocol import Reachable
from tests.support.batch_run import spec_of

TABLE = pa.table({"t": list(range(50_000)), "d": [f"{n * 7919 % 50_021:x}" for n in range(50_000)]})
_TABLES = 70_000  # bytes; all that is read here is larger


class BreaksOff(io.BytesIO):
    """Its end can be read, where some formats have their tables, and no more than a piece of the rest."""

    def read(self, size: int | None = -1) -> bytes:
        at, whole = self.tell(), len(self.getbuffer())
        if 0 < at < whole - _TABLES:
            raise OSError("When reading information: AWS Error SLOW_DOWN during GetObject operation")
        return super().read(4096 if at == 0 else size)


class Away:
    """A storage with one object."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def exists(self, name: str) -> bool:
        return True

    def size(self, name: str) -> int:
        return len(self._content)

    def open(self, name: str) -> BinaryIO:
        return BreaksOff(self._content)


def inputs_of(content: bytes) -> Inputs:
    inputs = Inputs(Reachable(locations=["s3://bucket/in"], address_policy=AddressPolicy()))
    [place] = inputs._locations._all
    place.__dict__["storage"] = Away(content)
    return inputs


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro_ocf"])
def test_a_file_whose_storage_breaks_off_is_not_called_damaged(kind: str, tmp_path: Path) -> None:
    {"parquet": pq.write_table, "orc": orc.write_table}.get(kind, _avro)(TABLE, tmp_path / "x")
    content = (tmp_path / "x").read_bytes()
    written: Any = spec_of({"type": "local", "files": ["/x"]}, {"type": kind}).ioConfig.inputFormat
    part = Part(found := InputFile("s3://bucket/in/x", len(content), 0), 0, len(content))
    with pytest.raises(DeepStorageError, match="read x") as told, inputs_of(content).open_input(found) as stream:
        list(read_container_rows(part, "x", stream, written, lambda column: True))
    assert not told.value.permanent


def test_nor_is_one_that_is_compressed() -> None:
    content = gzip.compress(b"".join(b"%d\n" % (n * 7919 % 50_021) for n in range(50_000)))
    part = Part(InputFile("s3://bucket/in/x.gz", len(content), 0), 0, len(content))
    with (
        pytest.raises(DeepStorageError, match="read x") as told,
        open_part(part, inputs_of(content)) as (name, file, end),
    ):
        list(read_lines(part, name, file, 0, end, of_json=True))
    assert not told.value.permanent


def _avro(table: pa.Table, path: Path) -> None:

    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "long"}, {"name": "d", "type": "string"}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist())
