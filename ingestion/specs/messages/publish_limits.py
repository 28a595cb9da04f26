"""What one publish may cost. The indexer keeps within it by itself, and the control plane refuses more."""

from __future__ import annotations

from ingestion.specs.messages.protocol import Outcomes, PublishRequest

MAX_SEGMENTS = 1_000  # each is a file, a row, and mostly an interval's lock
MAX_COLUMNS = 500_000  # of all segments together: each lists its own
MAX_RANGES = 500_000  # of offsets
MAX_QUARANTINED = 100_000  # records
MAX_KEPT_BYTES = 40 * 1024 * 1024  # keys, payloads and headers of these, and of those with a faulty field


def excess(request: PublishRequest) -> str:
    """Which limit the publish goes beyond; empty when it is within all."""
    sizes = {
        "segments": (len(request.segments), MAX_SEGMENTS),
        "columns": (sum(len(s.columns) for s in request.segments), MAX_COLUMNS),
        "ranges of offsets": (_ranges(request), MAX_RANGES),
        "quarantined records": (len(request.quarantined), MAX_QUARANTINED),
        "bytes of kept records": (_kept_bytes(request), MAX_KEPT_BYTES),
    }
    problems = [f"{n:,} {noun}, and one publish may have {most:,}" for noun, (n, most) in sizes.items() if n > most]
    return f"It has {'; '.join(problems)}." if problems else ""


def _ranges(request: PublishRequest) -> int:
    stored = sum(len(ranges) for s in request.segments for ranges in s.offsets.values())
    return stored + sum(len(getattr(o, name)) for o in request.outcomes.values() for name in Outcomes.model_fields)


def _kept_bytes(request: PublishRequest) -> int:
    return sum(len(r.payload or b"") for r in request.faulty) + sum(
        len(r.key or b"") + len(r.payload or b"") + sum(len(name) + len(value or b"") for name, value in r.headers)
        for r in request.quarantined
    )
