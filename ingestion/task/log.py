"""Structured log lines that say which datasource, task and indexer they are about. No secret ever reaches one."""

from __future__ import annotations

import sys
from typing import Any

import structlog


def configure() -> None:
    """One line an event, ``key=value``, to standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def logger_for(**context: Any) -> Any:
    """A logger whose lines carry the context."""
    return structlog.get_logger().bind(**context)
