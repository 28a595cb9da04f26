"""From what was read to what writers get: chunks by lane, and rows as the spec divides them.

Spark's shuffle keeps what it is given on the executors' disks, so what was read is there until it is written. Chunks
cross from Python to the JVM when they are read, and back when they are written; which Spark task reads which lanes is
the JVM's business.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from pyspark import RDD
from pyspark.serializers import CPickleSerializer

from ingestion.batch.partitions import Partitioning, PartitionKeys, Sample
from ingestion.batch.reading import Chunk, IntervalMs

_NUMBER = struct.Struct("!q")
Chunks = RDD[tuple[int, Chunk]]  # by the number of their split


class Shuffled:
    """Items by number, from 0 on, as Spark's shuffle has them once a job has asked for some."""

    def __init__(self, numbered: RDD[tuple[int, Any]], count: int) -> None:
        """``count``: of the numbers."""
        self._context = cast("Any", numbered.context)  # PySpark has no words of its own for what follows
        self._jvm = self._context._jvm
        written: Any = numbered.mapPartitions(_serialized)
        written._bypass_serializer = True  # they are bytes already
        pairs = self._jvm.PairwiseRDD(written._jrdd.rdd()).asJavaPairRDD()
        self._items = self._jvm.PythonRDD.valueOfPair(pairs.partitionBy(self._jvm.PythonPartitioner(count, 0)))

    @property
    def all(self) -> RDD[Any]:
        """A Spark partition for each number."""
        return self._read(self._items)

    def shares(self, shares: Sequence[Sequence[int]]) -> RDD[Any]:
        """A Spark partition for each share, with what those numbers have."""
        some = [self._share(share) for share in shares]
        if len(some) == 1:
            return self._read(some[0])
        array = self._context._gateway.new_array(self._jvm.org.apache.spark.api.java.JavaRDD, len(some))
        for index, share in enumerate(some):
            array[index] = share
        return self._read(self._context._jsc.union(array))

    def _share(self, numbers: Sequence[int]) -> Any:
        chosen = self._jvm.PythonUtils.toSeq(list(numbers)).toSet()  # in Scala a set is what says whether it holds one
        pruned = self._jvm.org.apache.spark.rdd.PartitionPruningRDD.create(self._items.rdd(), chosen)
        return pruned.toJavaRDD().coalesce(1)

    def _read(self, items: Any) -> RDD[Any]:
        return RDD(items, self._context, CPickleSerializer())


def shuffle_by_keys(chunks: Chunks, division: Partitioning) -> RDD[tuple[int, Chunk]]:
    """Their rows by bin: each Spark partition has one."""
    return Shuffled(chunks.flatMap(_chunk_splitter(division)), division.bins.count).all


def sample_chunks(chunks: Chunks, keys: PartitionKeys) -> RDD[tuple[IntervalMs, Sample]]:
    """One of each interval."""
    return chunks.map(_chunk_sampler(keys)).reduceByKey(Sample.joined)


def _serialized(numbered: Iterable[tuple[int, Any]]) -> Iterator[bytes]:
    """What ``PairwiseRDD`` makes pairs of: each number, then its item."""
    for number, item in numbered:
        yield _NUMBER.pack(number)
        yield pickle.dumps(item, pickle.HIGHEST_PROTOCOL)


def _chunk_splitter(division: Partitioning) -> Callable[[tuple[int, Chunk]], Iterator[tuple[int, tuple[int, Chunk]]]]:
    return lambda item: ((number, (item[0], piece)) for number, piece in division.pieces(item[1]))


def _chunk_sampler(keys: PartitionKeys) -> Callable[[tuple[int, Chunk]], tuple[IntervalMs, Sample]]:
    return lambda item: (item[1].place, keys.sampled(*item))
