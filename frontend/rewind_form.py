"""The form of a rewind: which records are read again, and with which spec version."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms

from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.rewinds import OWN, READ_WITH, Asked
from frontend.fill_form import lines_of
from frontend.filters import choice_input, set_choices, time_input

VERSIONS = 200  # that a list offers, the newest


def _version(label: str) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(label=label, required=False, coerce=int, empty_value=None, widget=choice_input())


def _time(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(label=label, required=False, widget=time_input())


class RewindForm(forms.Form):
    """``asked`` is what a valid one means."""

    spec_version = _version("Records that this spec version has stored")
    published_from = _time("Records that were published from (UTC)")
    published_until = _time("Records that were published before (UTC)")
    offsets = forms.CharField(
        label="Records at these offsets: a partition, its first offset and its end per line, such as 0: 1200-5000.",
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "form-control font-monospace", "rows": 2, "placeholder": "0: 1200-5000"}),
    )
    rows_from = _time("Or instead of all these: segments with rows from (UTC)")
    rows_until = _time("Segments with rows before (UTC)")
    of_rewind = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)
    read_with = _version("Read them with spec version")
    others = forms.ChoiceField(
        label="Read other records of the same segments with",
        required=False,
        choices=[
            ("", "The same version"),
            (OWN, "The version that has stored them, so that their rows stay as they are"),
        ],
        widget=choice_input(),
    )

    def __init__(self, *args: Any, supervisor: Supervisor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        newest = supervisor.versions.order_by("-version").values_list("version", flat=True)[:VERSIONS]
        versions = [(number, f"Version {number}") for number in newest]
        set_choices(self, "spec_version", [("", "Any"), *versions])
        set_choices(self, "read_with", [("", f"The current one, version {supervisor.version}"), *versions])

    def clean_offsets(self) -> dict[int, list[tuple[int, int]]]:
        """Partition → ranges; says which line can't be read."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for number, partition, start, end in lines_of(self.cleaned_data["offsets"]):
            if start >= end:
                raise forms.ValidationError(f"Line {number}: the start {start} must be lower than the end {end}.")
            ranges.setdefault(partition, []).append((start, end))
        return ranges

    def clean(self) -> dict[str, Any]:
        """Both times or none, the earlier one first."""
        cleaned = super().clean() or {}
        for name in ("published", "rows"):
            start, end = cleaned.get(f"{name}_from"), cleaned.get(f"{name}_until")
            if (start is None) != (end is None) and not self.errors:
                self.add_error(f"{name}_{'from' if start is None else 'until'}", "Give both times, or none.")
            if start is not None and end is not None and start >= end:
                self.add_error(f"{name}_until", "This must be later than the first time.")
        if cleaned.get("others") == OWN and cleaned.get("rows_from"):
            self.add_error("others", "Times of rows choose all records of segments: there are no other records.")
        return cleaned

    def asked(self, *, only_possible: bool = False, dry_run: bool = False) -> Asked:
        """Of a valid form."""
        cleaned = self.cleaned_data
        return Asked(
            spec_version=cleaned["spec_version"],
            of_rewind=cleaned["of_rewind"],
            published=self._span("published"),
            offsets=cleaned["offsets"] or None,
            times=self._span("rows"),
            read_with=cleaned["read_with"],
            others=cleaned["others"] or READ_WITH,
            only_possible=only_possible,
            dry_run=dry_run,
        )

    def sent(self, read_with: int) -> list[tuple[str, str]]:
        """What it was filled in with, as hidden fields send it again: with the version that the preview named."""
        given = {name: str(self.data[name]) for name in self.fields if self.data.get(name)}
        return [*{**given, "read_with": str(read_with)}.items()]

    def _span(self, name: str) -> tuple[datetime, datetime] | None:
        start, end = self.cleaned_data[f"{name}_from"], self.cleaned_data[f"{name}_until"]
        return (start, end) if start is not None and end is not None else None
