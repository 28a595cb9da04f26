"""Segments whose files are not what was registered of them: missing, torn or changed.

A process of the data plane reads the files (the control plane has no access to deep storage of its own); here is known
what they must be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from django.conf import settings
from django.db.models import QuerySet

from controlplane.common.errors import Unavailable
from controlplane.common.processes import conversation, write_line
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Segment
from ingestion.specs.base import Message
from ingestion.specs.messages.deep_storage import RegisteredFile, Verified, VerifyOrder

MODULE = "ingestion.segments.verification"
MAX_FAILURES = 5  # files in a row that deep storage does not let be looked at
PAGE = 1000


@dataclass
class Verification:
    """What a look at all files has found."""

    intact: int = 0
    size_bytes: int = 0  # of the files that are whole
    damaged: int = 0
    refused: int = 0
    error: str = ""  # why not all was looked at

    def summary(self) -> str:
        """For a person, on one line."""
        refused = f", {self.refused:,} could not be checked" if self.refused else ""
        early = f". Not everything was checked: {self.error}" if self.error else ""
        whole = f"{self.intact:,} segments ({self.size_bytes:,} bytes) are whole"
        return f"{whole}, {self.damaged:,} are damaged{refused}{early}"


def verify_segments(datasource: Datasource | None, tell: Callable[[str], None]) -> Verification:
    """Compare the files of all segments in use, or of one datasource's, with their sizes and hashes.

    ``tell`` gets a line for each that is not whole. Ends early when deep storage refuses several in a row. Raises
    ``Unavailable`` when the process that reads dies.
    """
    verification = Verification()
    segments = Segment.objects.filter(used=True).select_related("datasource")
    if datasource is not None:
        segments = segments.filter(datasource=datasource)
    with conversation(MODULE) as (stdin, stdout):
        opened = _request(stdin, stdout, VerifyOrder(deep_storage=settings.DEEP_STORAGE))
        verification.error = opened.refusal
        if not verification.error:
            _compare(segments, verification, tell, lambda file: _request(stdin, stdout, file))
    return verification


def _compare(
    segments: QuerySet[Segment],
    verification: Verification,
    tell: Callable[[str], None],
    ask: Callable[[RegisteredFile], Verified],
) -> None:
    in_a_row = 0
    for segment in segments.order_by("datasource__name", "interval_start", "partition_num", "pk").iterator(PAGE):
        answer = ask(RegisteredFile(path=segment.path, size_bytes=segment.size_bytes, sha256=segment.sha256))
        in_a_row = in_a_row + 1 if answer.refusal else 0
        if answer.damage or answer.refusal:
            tell(f"{segment.identifier}: {answer.damage or answer.refusal}")
        verification.damaged += bool(answer.damage)
        verification.refused += bool(answer.refusal)
        if not (answer.damage or answer.refusal):
            verification.intact += 1
            verification.size_bytes += segment.size_bytes
        if in_a_row == MAX_FAILURES:
            verification.error = answer.refusal
            return


def _request(stdin: IO[str], stdout: IO[str], message: Message) -> Verified:
    write_line(stdin, message.model_dump_json())
    line = stdout.readline()
    if not line:
        raise Unavailable("The process that looks at files in deep storage ended unexpectedly. See its log.")
    return Verified.model_validate_json(line)
