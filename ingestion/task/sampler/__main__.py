"""One order on standard input, one answer on standard output."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from ingestion.task.sampler.answering import answer_line, limit_memory
from ingestion.without_pandas import keep_pandas_out


def _private_output() -> TextIO:
    """Standard output for the answer alone: what a library prints goes to standard error."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


if __name__ == "__main__":
    keep_pandas_out()
    limit_memory()
    answer_line(sys.stdin, _private_output())
    sys.exit(0)
