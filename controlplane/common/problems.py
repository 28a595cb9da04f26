"""Spec errors as the control plane's errors: the one place where the two meet."""

from __future__ import annotations

from controlplane.common.errors import FieldError, InvalidInput
from ingestion.specs.errors import SpecError


def invalid_spec(error: SpecError) -> InvalidInput:
    """Every fault of the spec, in one answer."""
    faults = [FieldError(i.pointer, i.message, i.path) for i in error.issues]
    many = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    return InvalidInput(f"The spec has {many}.", faults)
