"""The pages' forms. What a spec may say is the spec models' business, not a form's."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.urls import reverse

from controlplane.common.strict_json import strict_json
from controlplane.records.lookup import RecordQuery
from controlplane.teams.models import User
from controlplane.teams.selectors import teams_administered
from frontend.filters import Window, set_choices, text_input, time_input
from ingestion.specs.kafka.positions import EXAMPLES, Position

_OFFSET = re.compile(r"\s*(\d{1,9})\s*[:=,\s]\s*(\d{1,19})\s*")  # partition and offset
_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})+)")
_EDITOR = {"spellcheck": "false", "autocomplete": "off", "data-json-editor": "", "data-errors": "spec-errors"}
LARGEST_SPEC = 1_000_000
LARGEST_OFFSET = 2**44 - 1


class LoginForm(AuthenticationForm):
    """Django's, in Bootstrap's clothes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("username", "password"):
            self.fields[name].widget.attrs["class"] = "form-control"


class SpecText(forms.Form):
    """A spec as JSON text. ``document`` becomes its values."""

    document = forms.CharField(
        label="Spec (JSON)",
        max_length=LARGEST_SPEC,
        strip=False,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 28, **_EDITOR}),
    )

    def __init__(self, *args: Any, nonce: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["document"].widget.attrs["data-nonce"] = nonce

    def clean_document(self) -> Any:
        """The JSON's values. The message says where the text stops being JSON."""
        return json_values(self.cleaned_data["document"])


class SpecForm(SpecText):
    """And the team of its datasource, where that is not clear."""

    team = forms.ChoiceField(
        label="Team",
        required=False,
        help_text="Owns the datasource if the spec names a new one.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["document"].widget.attrs["data-schema"] = reverse("frontend:spec-schema")
        names = list(teams_administered(user).values_list("name", flat=True))
        if len(names) < 2:
            del self.fields["team"]
        else:
            set_choices(self, "team", [("", "Choose…"), *((n, n) for n in names)])

    @property
    def team_name(self) -> str | None:
        return self.cleaned_data.get("team") or None


class PreviewForm(forms.Form):
    """Which records a spec is tried on."""

    records = forms.ChoiceField(
        label="Records",
        choices=[("first", "First in the topic"), ("last", "Last in the topic"), ("pasted", "Pasted")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    rows = forms.IntegerField(
        label="At most",
        min_value=1,
        max_value=200,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    pasted = forms.CharField(
        label="Pasted records, one per line",
        required=False,
        max_length=LARGEST_SPEC,
        strip=False,
        widget=forms.Textarea(attrs={"class": "form-control font-monospace", "rows": 3, "spellcheck": "false"}),
    )

    @property
    def io_config(self) -> dict[str, Any]:
        """What the choice puts into a spec's ioConfig."""
        chosen = self.cleaned_data["records"]
        if chosen == "pasted":
            return {"inputSource": {"type": "inline", "data": self.cleaned_data["pasted"]}}
        return {"useEarliestOffset": chosen == "first", "startPosition": None}


class ScaleForm(forms.Form):
    """How many indexers a supervisor is to keep."""

    task_count = forms.IntegerField(
        label="Indexers (taskCount)",
        min_value=1,
        max_value=1000,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )


class PositionInput(forms.CharField):
    """A position's text, as everywhere. Its value is a ``Position``, or None without a text."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return Position.parse(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(f"{error}.") from None


class ResetForm(forms.Form):
    """Where a supervisor's stored offsets are to go: all to a position, or some partitions to given offsets.

    With neither all of them are forgotten.
    """

    position = PositionInput(
        label=f"Position of all partitions: {EXAMPLES}. You see the offsets before Headgate stores them.",
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )
    offsets = forms.CharField(
        label="Or one partition and its next offset per line, such as 0: 1200. "
        "Both empty: all stored offsets are deleted.",
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "form-control font-monospace", "rows": 4, "placeholder": "0: 1200"}),
    )

    def clean(self) -> dict[str, Any]:
        """A position or offsets, not both."""
        cleaned = super().clean() or {}
        if cleaned.get("position") and cleaned.get("offsets"):
            self.add_error("offsets", "Leave this empty, or leave the position empty.")
        return cleaned

    def clean_offsets(self) -> dict[int, int]:
        """Partition → offset; says which line can't be read."""
        offsets: dict[int, int] = {}
        for number, line in enumerate(self.cleaned_data["offsets"].splitlines(), 1):
            if not line.strip():
                continue
            pair = _OFFSET.fullmatch(line)
            if pair is None:
                raise forms.ValidationError(f"Line {number} must be partition: offset, such as 0: 1200.")
            if int(pair[1]) in offsets:
                raise forms.ValidationError(f"Line {number} repeats partition {int(pair[1])}.")
            offsets[int(pair[1])] = int(pair[2])
        return offsets


class ShownReset(forms.Form):
    """A reset to a position as its preview has shown it: the offsets by topic and partition."""

    position = PositionInput(widget=forms.HiddenInput, max_length=100)
    topics = forms.CharField(widget=forms.HiddenInput, max_length=LARGEST_SPEC)

    def clean_topics(self) -> dict[str, dict[int, int]]:
        """Topic → partition → offset."""
        try:
            topics = json_values(self.cleaned_data["topics"])
            return {str(topic): {int(p): int(o) for p, o in offsets.items()} for topic, offsets in topics.items()}
        except (AttributeError, TypeError, ValueError):
            raise forms.ValidationError("These are not offsets by topic and partition.") from None


def json_values(text: str) -> Any:
    """Those of a JSON text. Raises ``ValidationError``, which says where the text stops being JSON."""
    try:
        return strict_json(text)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(f"Not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    except ValueError as error:
        raise forms.ValidationError(f"JSON not accepted: {error}.") from None


class RecordForm(Window):
    """Which record to look for: by its place, or by key and time."""

    topic = forms.CharField(max_length=249, widget=forms.TextInput(attrs={"class": "form-control"}))
    partition = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    offset = forms.IntegerField(
        required=False, min_value=0, max_value=LARGEST_OFFSET, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    key = forms.CharField(
        label="or key", required=False, max_length=4000, strip=False, widget=text_input("As text, or 0x…")
    )
    since = forms.DateTimeField(required=False, label="written from (UTC)", widget=time_input())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=time_input())
    group = forms.CharField(
        label="Share group or supervisor",
        required=False,
        max_length=249,
        widget=forms.TextInput(attrs={"class": "form-control", "placeholder": "Any"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = {**(super().clean() or {})}
        by_key = bool(cleaned.get("key"))
        if by_key and cleaned.get("offset") is not None:
            self.add_error("key", "Give an offset or a key, not both.")
        needed = ("since", "until") if by_key else ("partition", "offset")
        for name in needed:
            if cleaned.get(name) is None and name not in self.errors:
                self.add_error(name, "Required with a key." if by_key else "Required without a key.")
        return cleaned

    @property
    def record_query(self) -> RecordQuery:
        """Of a valid form."""
        cleaned = self.cleaned_data
        key = cleaned["key"]
        as_hex = _HEX.fullmatch(key)
        as_bytes = bytes.fromhex(as_hex[1]) if as_hex else key.encode()
        return RecordQuery(
            cleaned["topic"],
            cleaned["partition"],
            cleaned["offset"],
            as_bytes if key else None,
            cleaned["since"] if key else None,
            cleaned["until"] if key else None,
        )
