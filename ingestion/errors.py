"""Why the data plane can't go on: one tree, split by what a caller can do.

IngestionError
├── SourceProblem            Kafka is in the way; with ``permanent`` for good       ingestion.sources
│   ├── ReadRefused          the login lacks a right: ask again
│   ├── OffsetsUnavailable * what was to be read next is not in the log
│   └── NoSuchTopic *        of a sample: the spec names no topic there is
├── TopicChanged             nothing of it may be published: start anew             ingestion.sources
├── DecodeError              the decoder, not a record, is at fault                 ingestion.decode
│   ├── UnusableSchema *     the spec has to be mended
│   ├── TooSlow *            the spec takes too long on such records
│   ├── TooWide              records to be decoded, and kept, in smaller parts
│   ├── DecoderBroken        not even a good record is decoded
│   └── RegistryUnreachable  ask again: the breaker does; with ``permanent`` not for ever
│       └── SchemaRefused    it refuses one schema, and answers else: the schema's records are bad after a while
├── SegmentError             rows can't be written or read                          ingestion.segments
│   ├── DamagedSegment       a file is not what was written
│   ├── LacksExtents *       its rows do not say what makes a record the first or last
│   └── DeepStorageError     ask again, unless ``permanent``: the breaker does
├── InputRefused *           what is to be read is not there, or may not be read     ingestion.batch
├── InputUnreachable         it can't be had just now: Spark asks again
├── InputChanged *           a file is not what it was when the task began
├── MergeFailed              segments can't be merged: with ``permanent`` never      ingestion.compaction
├── ClientError              between an indexer and the control plane               ingestion.client
│   ├── Unreachable          nothing is known of the outcome: send it again
│   ├── PublishRefused       nothing was changed; its ``refusal`` says why
│   ├── TaskOver * -         nobody wants the work any more: end
│   └── Invalid              what was sent is not taken
│       └── Unacceptable     for what it says: less of it may be
├── Fenced -                 a newer epoch of the indexer runs                      ingestion.task
├── StoreWentBack            answered publishes are gone: start anew from what is stored
├── DeadlineExceeded         no outcome in time: give the batch up
├── PermanentRefusal *       what all records need is refused, and waiting is no help
│   ├── StorageRefused *     the deep storage refuses for good, or for too long
│   └── RegistryRefused *    the schema registry does not take the spec's login
├── Refused *                publishes are refused, and no record is at fault
├── TooManyParseExceptions * the spec says that the task fails then
└── Unusable *               of a sample: a part of the spec can't be compiled      ingestion.task.sampler

``*``: ``permanent``. ``-``: no failure. An exception that never leaves its own package is no ``IngestionError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # a decoder's process needs nothing of the protocol
    from ingestion.specs.messages.protocol import Directive


class IngestionError(Exception):
    """Base of what the data plane raises for a reason that it knows. Without a message, the class's own first line."""

    permanent: bool = False  # whoever starts again comes to the same end, until somebody changes something
    is_failure: ClassVar[bool] = True  # False when there is nothing wrong, but nothing to do here any more
    # What the task's other indexers are told when the task fails of it: to publish what they hold (``finish``), or to
    # release it (``stop``).
    directive_for_others: ClassVar[Directive] = "finish"

    def __init__(self, message: str = "", permanent: bool | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").partition("\n")[0])
        if permanent is not None:
            self.permanent = permanent
