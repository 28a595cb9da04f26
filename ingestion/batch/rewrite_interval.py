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
from ingestion.batch.partitions import Partitioning, PartitionKeys, Sample, plan_partitions
from ingestion.batch.reading import Chunk, IntervalMs, Reader, SplitReport
from ingestion.batch.split_quarantine import QuarantineLimits
from ingestion.batch.splits import Part, Split
from ingestion.batch.writing import write_bin
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.specs.messages.batch_protocol import Reachable
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.tasks.batch import BatchSpec

_ALL_CHUNKS, _KEEP_NOTHING = 0, QuarantineLimits(0, 0)


def rewrite_interval(
    spec: BatchSpec,
    segments: Sequence[InputSegment],
    version: str,
    storage: DeepStorage,
    scratch: Path,
    ids: ColumnIds,
) -> list[SegmentFile]:
    """``spec`` deals out rows by hash or range, and reads segments; these are all that it reads.

    Raises ``InputRefused`` for rows that it does not take, and what ``Reader.chunks`` and ``write_bin`` do.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with ChunkStore(scratch / "read") as read_chunks, ChunkStore(scratch / "dealt") as dealt:
        _read_chunks(spec, segments, storage, read_chunks)
        division = _plan_partitions(spec, read_chunks)
        for chunk in read_chunks.chunks(_ALL_CHUNKS):
            for number, piece in division.pieces(chunk):
                dealt.add(number, piece)
        gathers = scratch / "gathers"
        written = [write_bin(dealt.chunks(n), spec, version, storage, gathers, ids) for n in sorted(dealt.keys)]
    return [file for output in written for file in output.files]


class ChunkStore:
    """Chunks by a key, each key's in the order in which they came: their rows on disk, the rest in memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self.keys: dict[int, list[tuple[Chunk, int, int]]] = {}

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, key: int, chunk: Chunk) -> None:
        """After all that are there."""
        start = self._file.seek(0, 2)
        self._file.write(chunk.content)
        self.keys.setdefault(key, []).append((replace(chunk, content=b""), start, len(chunk.content)))

    def chunks(self, key: int) -> Iterator[Chunk]:
        """Those of the key, with their rows."""
        for chunk, start, length in self.keys[key]:
            self._file.seek(start)
            yield replace(chunk, content=self._file.read(length))

    def chunk_heads(self, key: int) -> Iterator[Chunk]:
        """Those of the key, without their rows."""
        return (chunk for chunk, *_ in self.keys[key])


def _read_chunks(
    spec: BatchSpec, segments: Sequence[InputSegment], storage: DeepStorage, chunk_store: ChunkStore
) -> None:
    parts, report = tuple(Part(None, segment=segment) for segment in segments), SplitReport(_ALL_CHUNKS)
    reader = Reader(spec, Inputs(Reachable()), storage, _KEEP_NOTHING, careful=False)
    try:
        for chunk in reader.chunks(Split(_ALL_CHUNKS, parts), report):
            chunk_store.add(_ALL_CHUNKS, chunk)
    finally:
        reader.close()
    rows = sum(s.rows for s in segments)
    if report.processed != rows:
        first = f" The first: {report.unread[0].place}: {report.unread[0].error}" if report.unread else ""
        raise InputRefused(f"{rows - report.processed} of {rows} rows can't be rewritten.{first}")


def _plan_partitions(spec: BatchSpec, chunk_store: ChunkStore) -> Partitioning:
    rows: Counter[IntervalMs] = Counter()
    for chunk in chunk_store.chunk_heads(_ALL_CHUNKS):
        rows[chunk.place] += chunk.rows
    keys = PartitionKeys.of(spec, [chunk.held for chunk in chunk_store.chunk_heads(_ALL_CHUNKS)])
    samples: dict[IntervalMs, Sample] = {}
    for chunk in chunk_store.chunks(_ALL_CHUNKS) if keys.needs_sample else ():
        sample = keys.sampled(_ALL_CHUNKS, chunk)
        samples[chunk.place] = samples[chunk.place].joined(sample) if chunk.place in samples else sample
    return plan_partitions(spec, keys, rows, samples, writers=1)
