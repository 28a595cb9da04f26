"""Where records come from, behind one small protocol: ``Source``."""

from ingestion.sources.base import ACCEPT, REJECT, RELEASE, Batch, Source, SourceProblem, TopicChanged
from ingestion.sources.topic import TopicIdentity

__all__ = [
    "ACCEPT",
    "REJECT",
    "RELEASE",
    "Batch",
    "Source",
    "SourceProblem",
    "TopicChanged",
    "TopicIdentity",
]
