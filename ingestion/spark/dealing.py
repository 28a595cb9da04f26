"""From the chunks that were read to those that writers get: by rows alone, or as the spec divides them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark import RDD

from ingestion.batch.bins import Bins
from ingestion.batch.partitions import Division, Keys, Sample
from ingestion.batch.reading import Chunk, Place

Found = RDD[Any]  # of pairs: a split's number, and a ``Chunk`` or something else


def dealt_by_rows(found: Found, bins: Bins) -> Found:
    """The chunks by bin: each Spark partition has one."""
    keyed = _chunks(found).map(lambda item: (bins.bin_of(item[1].place, item[0], item[1].number), item[1]))
    return keyed.partitionBy(bins.count, int)


def dealt_by_keys(found: Found, division: Division) -> Found:
    """Their rows by bin, likewise."""
    return _chunks(found).flatMap(_pieces(division)).partitionBy(division.bins.count, int)


def samples_of(found: Found, keys: Keys) -> Found:
    """One of each interval."""
    return _chunks(found).map(_sampled(keys)).reduceByKey(Sample.joined)


def _chunks(found: Found) -> Found:
    return found.filter(lambda item: isinstance(item[1], Chunk))


def _pieces(division: Division) -> Callable[[tuple[int, Chunk]], Iterator[tuple[int, Chunk]]]:
    return lambda item: division.pieces(item[1])


def _sampled(keys: Keys) -> Callable[[tuple[int, Chunk]], tuple[Place, Sample]]:
    return lambda item: (item[1].place, keys.sampled(*item))
