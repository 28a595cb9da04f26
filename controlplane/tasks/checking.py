"""Specs as users send them: read, and where that takes more than reading, checked by a process of the data plane.

Expressions, schemas and time patterns are understood by the decoder alone, which the control plane knows nothing of.
What it would refuse when a task starts is refused here, before anything is stored.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from controlplane.common.errors import InvalidInput, Unavailable, invalid_spec
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.processes import bare_environment
from controlplane.teams.models import User
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.checking import (
    CheckAnswer,
    CheckOrder,
    format_of,
    needs_check,
    pattern_of,
    reader_schema_of,
)
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, TaskSpec, issues_as_written

MODULE = "ingestion.task.check_spec"
CHECK_S = 30.0
# In this process: each takes a processor for a second, and some hundred megabytes.
_limiter = FairPlaces(places=2, per_user=1, waiting=4)
Spec = TypeVar("Spec", TaskSpec, SupervisorSpec, BatchTaskSpec)


def read_spec(user: User, document: Any, parse: Callable[[Any], Spec]) -> Spec:
    """The spec in ``document``. Raises ``InvalidInput`` with every fault, ``Unavailable``."""
    try:
        spec = parse(document)
        if needs_check(spec.spec):
            check_by_data_plane(user, document, spec)
    except SpecError as error:
        raise invalid_spec(error) from None
    return spec


def check_by_data_plane(user: User, document: Any, spec: TaskSpec | SupervisorSpec | BatchTaskSpec) -> None:
    """Raise ``SpecError`` for what the data plane would refuse, by its place in ``document``; ``Unavailable``."""
    folder = settings.SCHEMA_FOLDER
    # Without a folder no spec may name a file; with one it is where indexers run, which need not be here.
    order = CheckOrder(
        data_schema=spec.spec.dataSchema,
        input_format=format_of(spec.spec),
        reader_schema=reader_schema_of(spec.spec),
        topic_pattern=pattern_of(spec.spec),
        schema_folder=folder,
        reads_files=not folder or Path(folder).is_dir(),
    )
    try:
        with _limiter.place(user.pk, within_s=CHECK_S):
            answer = _asked(order)
    except NoPlace:
        raise Unavailable("Too many specs are being checked at the same time. Send it again.") from None
    if answer.issues:
        raise SpecError(issues_as_written(document, [(i.place, i.message) for i in answer.issues]))


def _asked(order: CheckOrder) -> CheckAnswer:
    try:
        process = subprocess.run(
            [sys.executable, "-m", MODULE],
            cwd=settings.BASE_DIR,
            env={**bare_environment(), "PYTHONPATH": str(settings.BASE_DIR)},
            input=order.model_dump_json() + "\n",
            stdout=subprocess.PIPE,
            text=True,
            timeout=CHECK_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        # One that takes too much is ended by its bound of processor time: this one hardly got any.
        raise Unavailable(f"The spec could not be checked within {CHECK_S:g} s: the machine is busy.") from None
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:  # by a signal: it went beyond its processor time or memory
            raise InvalidInput(f"The spec takes too much to check: {_TOO_MUCH}") from None
        raise Unavailable("The process that checks specs failed. Its log on standard error says why.") from error
    except OSError as error:
        raise Unavailable(f"The process that checks specs could not start: {error.strerror}.") from error
    return CheckAnswer.model_validate_json(process.stdout)


_TOO_MUCH = "simplify its expressions, patterns and schemas."
