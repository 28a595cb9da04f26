"""A few segments of one interval written anew by one process: what a batch task does in two Spark jobs and a shuffle.

What was read is kept on disk in between, since only then it is known how many partitions there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ingestion.batch.errors import InputRefused
from ingestion.batch.inputs import Inputs
from ingestion.batch.kept import Room
from ingestion.batch.partitions import Division, Keys, Sample, division_of
from ingestion.batch.reading import Chunk, Place, Reader, Told
from ingestion.batch.splits import Part, Split
from ingestion.batch.writing import write
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.specs.messages.batch_protocol import Reachable
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.tasks.batch import BatchSpec

_ALL, _NOTHING = 0, Room(0, 0)


def rewrite_interval(
    spec: BatchSpec,
    segments: Sequence[InputSegment],
    version: str,
    storage: DeepStorage,
    scratch: Path,
    ids: ColumnIds,
) -> list[SegmentFile]:
    """``spec`` deals out rows by hash or range, and reads segments; these are all that it reads.

    Raises ``InputRefused`` for rows that it does not take, and what ``Reader.chunks`` and ``write`` do.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with ScratchStorage(scratch / "read") as found, ScratchStorage(scratch / "dealt") as dealt:
        _read(spec, segments, storage, found)
        division = _division(spec, found)
        for chunk in found.chunks(_ALL):
            for number, piece in division.pieces(chunk):
                dealt.add(number, piece)
        gathers = scratch / "gathers"
        written = [write(dealt.chunks(n), spec, version, storage, gathers, ids) for n in sorted(dealt.keys)]
    return [file for done in written for file in done.files]


class ScratchStorage:
    """Chunks by a key, each key's in the order in which they came: their rows on disk, the rest in memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self.keys: dict[int, list[tuple[Chunk, int, int]]] = {}

    def __enter__(self) -> ScratchStorage:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, key: int, chunk: Chunk) -> None:
        """After all that are there."""
        begins = self._file.seek(0, 2)
        self._file.write(chunk.content)
        self.keys.setdefault(key, []).append((replace(chunk, content=b""), begins, len(chunk.content)))

    def chunks(self, key: int) -> Iterator[Chunk]:
        """Those of the key, with their rows."""
        for chunk, begins, length in self.keys[key]:
            self._file.seek(begins)
            yield replace(chunk, content=self._file.read(length))

    def told(self, key: int) -> Iterator[Chunk]:
        """Those of the key, without their rows."""
        return (chunk for chunk, *_ in self.keys[key])


def _read(spec: BatchSpec, segments: Sequence[InputSegment], storage: DeepStorage, found: ScratchStorage) -> None:
    parts, told = tuple(Part(None, segment=segment) for segment in segments), Told(_ALL)
    reader = Reader(spec, Inputs(Reachable()), storage, _NOTHING, careful=False)
    try:
        for chunk in reader.chunks(Split(_ALL, parts), told):
            found.add(_ALL, chunk)
    finally:
        reader.close()
    rows = sum(s.rows for s in segments)
    if told.processed != rows:
        first = f" The first: {told.unread[0].place}: {told.unread[0].error}" if told.unread else ""
        raise InputRefused(f"Of {rows} rows {rows - told.processed} can't be written anew.{first}")


def _division(spec: BatchSpec, found: ScratchStorage) -> Division:
    rows: Counter[Place] = Counter()
    for chunk in found.told(_ALL):
        rows[chunk.place] += chunk.rows
    keys = Keys.of(spec, [chunk.held for chunk in found.told(_ALL)])
    samples: dict[Place, Sample] = {}
    for chunk in found.chunks(_ALL) if keys.needs_sample else ():
        sample = keys.sampled(_ALL, chunk)
        samples[chunk.place] = samples[chunk.place].joined(sample) if chunk.place in samples else sample
    return division_of(spec, keys, rows, samples, writers=1)
