"""The quarantine's forms: which records and causes to list, what to do with records, the spec that reads them again."""

from __future__ import annotations

from typing import Any, get_args

from django import forms
from django.http import QueryDict

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.quarantine.selectors.causes import CauseFilter
from controlplane.quarantine.selectors.filters import MAX_KEY, Choice, QuarantineFilter
from frontend.filters import Filter, Window, choice_input, set_choices, text_input, time_input
from frontend.forms import SpecText
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord

REASONS = get_args(WireRecord.model_fields["reason"].annotation)


class QuarantineFilterForm(Filter, Window):
    """Which quarantined records to list, and to act on. Its values are those of a ``QuarantineFilter``."""

    reason = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *((r, r.replace("_", " ")) for r in REASONS)],
        widget=choice_input(),
    )
    cause = forms.CharField(required=False, max_length=FINGERPRINT_LENGTH, widget=forms.HiddenInput)  # of a link
    state = forms.ChoiceField(
        required=False, choices=[("", "Any"), *QuarantinedRecord.State.choices], widget=choice_input()
    )
    topic = forms.CharField(required=False, max_length=249, widget=text_input("Name"))
    partition = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    since = forms.DateTimeField(required=False, label="Quarantined from (UTC)", widget=time_input())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=time_input())
    task = forms.CharField(required=False, max_length=300, label="By task", widget=text_input("Id"))

    @property
    def selection(self) -> QuarantineFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        return QuarantineFilter.of(self.cleaned_data)

    @property
    def rest_parameters(self) -> dict[str, str]:
        """What is chosen, as REST's addresses have it."""
        return {self.add_prefix(name): str(value) for name, value in self.selection.described().items()}


class CausesFilterForm(Filter):
    """Which causes of the quarantine to list. Its values are those of a ``CauseFilter``."""

    show = forms.ChoiceField(required=False, choices=[("", "Waiting"), ("all", "All")], widget=choice_input())
    team = forms.ChoiceField(required=False, widget=choice_input())
    datasource = forms.CharField(required=False, max_length=200, widget=text_input("Name"))
    reason = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((r, r.replace("_", " ")) for r in REASONS)], widget=choice_input()
    )
    cause = forms.CharField(required=False, max_length=FINGERPRINT_LENGTH, widget=forms.HiddenInput)  # of a link
    since = forms.DateTimeField(required=False, label="Seen since (UTC)", widget=time_input())

    def __init__(self, *args: Any, teams: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, "team", [("", "Any"), *((name, name) for name in teams)])

    @property
    def selection(self) -> CauseFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        return CauseFilter.of({**self.cleaned_data, "waiting": self.cleaned_data.get("show") != "all"})


class ChosenForm(forms.Form):
    """Which records of the list to act on: those ticked, or all that match its filter up to an id."""

    action = forms.ChoiceField(choices=[(a, a) for a in ("ingest", "produce", "purge")])
    scope = forms.ChoiceField(choices=[("ticked", ""), ("matching", "")])
    record = forms.TypedMultipleChoiceField(required=False, coerce=int)
    upto = forms.IntegerField(required=False, min_value=0, max_value=MAX_KEY)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        ticked = [n for n in data.getlist("record") if n.isdecimal() and len(n) < 19]
        set_choices(self, "record", [(n, n) for n in ticked])

    def choice(self, list_filter: QuarantineFilter) -> Choice:
        """Of a valid form. ``list_filter``: the list's filter."""
        if self.cleaned_data["scope"] == "ticked":
            return Choice(ids=tuple(self.cleaned_data["record"]))
        upto = self.cleaned_data["upto"]
        return Choice(filter=list_filter, max_id=MAX_KEY if upto is None else upto)


class ReprocessForm(SpecText):
    """A spec to be tried on quarantined records, and submitted for those with ids to ``upto``."""

    upto = forms.IntegerField(required=False, min_value=0, max_value=MAX_KEY)
