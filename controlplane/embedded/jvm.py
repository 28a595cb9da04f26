"""Java, as the stack uses it."""

from __future__ import annotations

import functools

from controlplane.embedded import prerequisites
from controlplane.embedded.errors import PrerequisiteMissing


def require_prerequisites() -> None:
    """Raises PrerequisiteMissing when Python or Java is missing or too old."""
    if problem := prerequisites.problem():
        raise PrerequisiteMissing(problem)


@functools.cache
def java() -> str:
    """The Java program. Raises PrerequisiteMissing when there is none or it is older than 17."""
    problem, program = prerequisites.java_problem(), prerequisites.java_program()
    if problem or program is None:
        raise PrerequisiteMissing(problem or "There is no java on the PATH.")
    return program
