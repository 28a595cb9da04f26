"""What the review sends: the JSON, and the forms of the steps beside it. Whatever was typed into any of them counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.http import QueryDict

from controlplane.common.errors import InvalidInput
from controlplane.loading.documents import Document, value_at
from frontend.load.forms import StepForm
from frontend.load.steps import STEPS, Step

# The step's form, filled with what was sent, upon a document.
MakeForm = Callable[[Step, Document], StepForm]


def plain(sent: QueryDict) -> QueryDict:
    """Browsers end lines with two characters: a text that nobody changed must equal what was shown."""
    copy = sent.copy()
    for name, values in sent.lists():
        copy.setlist(name, [str(value).replace("\r\n", "\n") for value in values])
    return copy


def prefix_of(step: Step) -> str | None:
    """Of the names of the step's fields on the review. The name of the datasource is the review's own field."""
    return None if step is STEPS[-1] else step.name


def is_beside(step: Step, sent: QueryDict) -> bool:
    """Whether the step's form was on the page that was sent."""
    prefix = prefix_of(step)
    return "datasource" in sent if prefix is None else any(name.startswith(f"{prefix}-") for name in sent)


def merged(before: Document, written: Document, steps: Sequence[Step], make_form: MakeForm) -> Document | None:
    """``written``, the JSON, with what the forms of these steps change; None if one of them has a mistake.

    ``before``: what the page has shown. Raises ``InvalidInput`` where the JSON changed the same thing otherwise.
    """
    document = written
    for step in steps:
        if not make_form(step, before).has_changed():
            continue
        form = make_form(step, document)
        if not form.is_valid():
            return None
        changed = form.edited()
        if _conflicts(before, written, changed, step):
            message = f"The JSON and the form of step {step.label} change the same thing. Keep one of the two changes."
            raise InvalidInput(message)
        document = changed
    return document


def _conflicts(before: Document, written: Document, changed: Document, step: Step) -> bool:
    """Whether the step's form changes what the JSON has changed."""
    paths = [place.strip("/").split("/") for place in step.places]
    return any(value_at(before, path) != value_at(written, path) != value_at(changed, path) for path in paths)
