"""What is read, dealt out: a large file by byte ranges, small ones together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ingestion.batch.errors import InputRefused
from ingestion.batch.files import InputFile
from ingestion.batch.inputs import Inputs
from ingestion.specs.formats.file_format import CONTAINERS, AvroFileInputFormat
from ingestion.specs.inputs.input_source import InlineInputSource, leaf_sources
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.tasks.batch import BatchSpec

# Read whole, as nobody knows where in them a line begins: see ``lines``.
COMPRESSED = (".gz", ".bz2", ".xz")
_UNREADABLE = (".zip", ".zst", ".sz", ".lz4", ".snappy", ".z")
_MIN_BYTES = 4 * 1024 * 1024  # a Spark task costs as much as to read this
_MAX_BYTES = 64 * 1024 * 1024
_TASKS_A_SLOT = 4


@dataclass(frozen=True)
class Part:
    """Of a file the records that begin in ``[start, end)``; of a spec its text; or the rows of a segment."""

    file: InputFile | None
    start: int = 0
    end: int = 0
    text: str = ""
    segment: InputSegment | None = None
    is_indivisible: bool = False  # it must not be cut

    @property
    def size(self) -> int:
        """Bytes of the file."""
        if self.segment is not None:
            return self.segment.size_bytes
        return self.end - self.start if self.file is not None else len(self.text)


@dataclass(frozen=True)
class Split:
    """What one Spark task reads."""

    number: int
    parts: tuple[Part, ...]


def plan_splits(spec: BatchSpec, inputs: Inputs, slots: int, segments: Sequence[InputSegment] = ()) -> list[Split]:
    """Of all that the source names, or of ``segments``. Raises ``InputRefused``, also when there is nothing to read."""
    source, hint = spec.ioConfig.inputSource, spec.tuningConfig.splitHintSpec
    parts = [Part(None, segment=segment) for segment in segments]
    for _, leaf in leaf_sources(source):
        if isinstance(leaf, InlineInputSource):
            parts.append(Part(None, text=leaf.data))
        else:
            parts += [Part(file, 0, file.size) for file in inputs.list_files(leaf) if file.size]
    if not parts:
        raise InputRefused("There is nothing to read: the inputSource is empty.")
    parts = [replace(part, is_indivisible=_is_unsplittable(part.file, spec)) if part.file else part for part in parts]
    size = split_bytes(sum(p.size for p in parts), hint.maxSplitSize, slots)
    return pack_splits(parts, size, hint.maxNumFiles)


def _is_unsplittable(file: InputFile, spec: BatchSpec) -> bool:
    """Whether nobody knows where in a file a record begins. Files that are no lines are compressed inside, or not."""
    path, written = file.path, spec.ioConfig.inputFormat
    if isinstance(written, CONTAINERS):
        return file.is_on_the_web or isinstance(written, AvroFileInputFormat)
    if path.lower().endswith(_UNREADABLE):
        raise InputRefused(f"{path} is compressed in a way that is not supported: use gz, bz2 or xz.")
    return file.is_on_the_web or path.lower().endswith(COMPRESSED)


def split_bytes(total: int, most: int, slots: int) -> int:
    """How much one Spark task reads: some tasks a slot, so that the last ones end together."""
    return min(most, _MAX_BYTES, max(_MIN_BYTES, -(-total // (slots * _TASKS_A_SLOT))))


def pack_splits(parts: Iterable[Part], size: int, most_files: int) -> list[Split]:
    """Splits of about this many bytes, in the order of the parts."""
    splits: list[Split] = []
    split_parts: list[Part] = []
    for part in (piece for uncut in parts for piece in _cut_part(uncut, size)):
        if split_parts and (sum(p.size for p in split_parts) + part.size > size or len(split_parts) >= most_files):
            splits.append(Split(len(splits), tuple(split_parts)))
            split_parts = []
        split_parts.append(part)
    return [*splits, Split(len(splits), tuple(split_parts))] if split_parts else splits


def _cut_part(part: Part, size: int) -> Iterator[Part]:
    file = part.file
    if file is None or part.is_indivisible or part.size <= size + size // 2:
        yield part
        return
    for start in range(0, file.size, size):
        yield Part(file, start, min(start + size, file.size))
