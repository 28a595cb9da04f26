"""Which batch tasks an application serves that has waited: those for which it starts sooner, and reads no slower.

Its JVM compiles little and its Spark has all slots, so a task must read no more than its own slots would at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from controlplane.tasks.models import Task
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.input_source import DruidInputSource, InlineInputSource, LocalInputSource, leaf_sources
from ingestion.specs.tasks.batch import BatchTuningConfig, parse_batch_spec

SLOT_BYTES = 4 * 1024 * 1024  # what one Spark task reads at the least: see ``ingestion.batch.splits``
MAX_BYTES = 4 * SLOT_BYTES
MAX_FILES = 100
MAX_SEEN = 1_000  # names below a folder, before nobody knows how much it holds
LEAST_ROWS = 100_000  # of a segment: with fewer, many Spark tasks would write
_UNKNOWN = MAX_BYTES + 1


def is_small(task: Task) -> bool:
    """Whether this host sees that it reads little; what lies elsewhere, in segments too, may be large."""
    try:
        spec = parse_batch_spec(task.as_batch).spec
    except SpecError:
        return False
    tuning = spec.tuningConfig
    if tuning.dividing is not None or tuning.rows_per_segment < LEAST_ROWS:
        return False
    source = spec.ioConfig.inputSource
    if tuning.splitHintSpec != BatchTuningConfig().splitHintSpec or isinstance(source, DruidInputSource):
        return False
    sizes = list(islice((size for _, leaf in leaf_sources(source) for size in _sizes(leaf)), MAX_FILES + 1))
    return len(sizes) <= MAX_FILES and sum(sizes) <= min(MAX_BYTES, SLOT_BYTES * task.slots)


def _sizes(source: object) -> Iterator[int]:
    """Bytes, file by file."""
    if isinstance(source, InlineInputSource):
        yield len(source.data)
    elif not isinstance(source, LocalInputSource):
        yield _UNKNOWN
    elif source.baseDir is None:
        yield from map(_size, source.files)
    else:
        yield from _sizes_below(source.baseDir, source.filter or "*")


def _sizes_below(folder: str, wildcard: str) -> Iterator[int]:
    seen, pattern = 0, wildcard.replace("[", "[[]")  # in Druid's wildcards only * and ? have a meaning
    for parent, folders, files in os.walk(folder):
        seen += len(folders) + len(files)
        if seen > MAX_SEEN:
            yield _UNKNOWN
            return
        yield from (_size(os.path.join(parent, name)) for name in files if fnmatchcase(name, pattern))


def _size(path: str) -> int:
    """Nothing of one that is not there: the task says so."""
    try:
        return Path(path).lstat().st_size
    except OSError:
        return 0
