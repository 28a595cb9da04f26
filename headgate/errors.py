"""Why a read through these data sources can't go on. Messages hold no secrets."""

from __future__ import annotations


class HeadgateError(Exception):
    """What users of this package may catch."""


class OptionError(HeadgateError):
    """An option is missing, unknown, or makes no sense; the message names it and what to write instead."""


class InUse(HeadgateError):
    """Another query uses this buffer location, and lives."""


class Fenced(HeadgateError):
    """Another query has taken the buffer location over: this one may acknowledge nothing more."""


class DataLoss(HeadgateError):
    """What a checkpoint says is no longer there, or the topic is another one of its name."""


class ReaderFailed(HeadgateError):
    """A reader can't go on: what Kafka or the storage said."""
