"""The pages' forms. What a spec may say is the spec models' business, not a form's."""

from __future__ import annotations

import json
import re
from typing import Any, cast, get_args

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.http import QueryDict
from django.urls import reverse

from controlplane.common.strictjson import strict_json
from controlplane.connections.models import Connection
from controlplane.segments.models import QuarantinedRecord
from controlplane.segments.selectors.causes import CauseFilter
from controlplane.segments.selectors.quarantine import BIGGEST_KEY, Choice, QuarantineFilter
from controlplane.supervisors.lookup import Wanted
from controlplane.supervisors.models import State
from controlplane.tasks.models import Status, task_kinds
from controlplane.teams.models import User
from controlplane.teams.selectors import teams_administered
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.protocol import QuarantinedRecord as WireRecord

_OFFSET = re.compile(r"\s*(\d{1,9})\s*[:=,\s]\s*(\d{1,19})\s*")  # partition and offset
_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})+)")
_EDITOR = {"spellcheck": "false", "autocomplete": "off", "data-json-editor": "", "data-errors": "spec-errors"}
LARGEST_SPEC = 1_000_000
LARGEST_OFFSET = 2**44 - 1
REASONS = get_args(WireRecord.model_fields["reason"].annotation)


class LoginForm(AuthenticationForm):
    """Django's, in Bootstrap's clothes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("username", "password"):
            self.fields[name].widget.attrs["class"] = "form-control"


class SpecForm(forms.Form):
    """A spec as JSON text, and the team of its datasource where that is not clear. ``document`` becomes its values."""

    document = forms.CharField(
        label="Spec (JSON)",
        max_length=LARGEST_SPEC,
        strip=False,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 28, **_EDITOR}),
    )
    team = forms.ChoiceField(
        label="Team",
        required=False,
        help_text="Owns the datasource if the spec names a new one.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, *args: Any, user: User, nonce: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["document"].widget.attrs |= {"data-nonce": nonce, "data-schema": reverse("frontend:spec-schema")}
        names = list(_teams_to_choose(user).values_list("name", flat=True))
        if len(names) < 2:
            del self.fields["team"]
        else:
            _offer(self, "team", [("", "Choose…"), *((n, n) for n in names)])

    def clean_document(self) -> Any:
        """The JSON's values. The message says where the text stops being JSON."""
        return json_values(self.cleaned_data["document"])

    @property
    def team_name(self) -> str | None:
        return self.cleaned_data.get("team") or None


class MendForm(forms.Form):
    """A spec as JSON text, to be tried on quarantined records, and submitted for those with ids to ``upto``."""

    document = forms.CharField(
        label="Spec (JSON)",
        max_length=LARGEST_SPEC,
        strip=False,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 28, **_EDITOR}),
    )
    upto = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_KEY)

    def __init__(self, *args: Any, nonce: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["document"].widget.attrs["data-nonce"] = nonce

    def clean_document(self) -> Any:
        """The JSON's values. The message says where the text stops being JSON."""
        return json_values(self.cleaned_data["document"])


class PreviewForm(forms.Form):
    """Which records a spec is tried on."""

    records = forms.ChoiceField(
        label="Records",
        choices=[("first", "The topic's first"), ("last", "The topic's last"), ("pasted", "Pasted ones")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    rows = forms.IntegerField(
        label="At most",
        min_value=1,
        max_value=200,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    pasted = forms.CharField(
        label="Pasted records (if you chose them): one a line",
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
        return {"useEarliestOffset": chosen == "first"}


def _teams_to_choose(user: User) -> Any:
    return teams_administered(user)


class ScaleForm(forms.Form):
    """How many indexers a supervisor is to keep."""

    task_count = forms.IntegerField(
        label="Indexers (taskCount)",
        min_value=1,
        max_value=1000,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )


class ResetForm(forms.Form):
    """Where a supervisor's stored offsets are to go: some partitions', or with none given all of them forgotten."""

    offsets = forms.CharField(
        label="Partitions and their next offsets, a pair on each line, as 0: 1200. None: all offsets are forgotten.",
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "form-control font-monospace", "rows": 4, "placeholder": "0: 1200"}),
    )

    def clean_offsets(self) -> dict[int, int]:
        """Partition → offset; says which line can't be read."""
        offsets: dict[int, int] = {}
        for number, line in enumerate(self.cleaned_data["offsets"].splitlines(), 1):
            if not line.strip():
                continue
            pair = _OFFSET.fullmatch(line)
            if pair is None:
                raise forms.ValidationError(f"Line {number} is no partition and offset, such as 0: 1200.")
            if int(pair[1]) in offsets:
                raise forms.ValidationError(f"Line {number} gives partition {int(pair[1])} a second time.")
            offsets[int(pair[1])] = int(pair[2])
        return offsets


def json_values(text: str) -> Any:
    """Those of a JSON text. Raises ``ValidationError``, which says where the text stops being JSON."""
    try:
        return strict_json(text)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(f"Not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    except ValueError as error:
        raise forms.ValidationError(f"Not JSON that can be taken: {error}.") from None


def _offer(form: forms.Form, name: str, choices: list[tuple[Any, Any]]) -> None:
    """What a field of choices is to be chosen from."""
    cast(forms.ChoiceField, form.fields[name]).choices = choices


class _Window(forms.Form):
    """A form whose ``since`` and ``until`` are ``from`` and ``to`` in addresses, as they are in REST's."""

    IN_ADDRESSES = {"since": "from", "until": "to"}

    def add_prefix(self, field_name: str) -> str:
        return self.IN_ADDRESSES.get(field_name, field_name)

    @classmethod
    def parameters(cls) -> list[str]:
        """What its fields are called in an address."""
        return [cls.IN_ADDRESSES.get(name, name) for name in cls.base_fields]


class _Filter(forms.Form):
    """Choices from an address: one that can't be read filters nothing."""

    def chosen(self, name: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")


def _select() -> forms.Select:
    return forms.Select(attrs={"class": "form-select"})


def _text(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "placeholder": placeholder, "type": "search"})


def _moment() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class TaskFilter(_Filter):
    """Which tasks to list."""

    status = forms.ChoiceField(required=False, choices=[("", "Any"), *Status.choices], widget=_select())
    kind = forms.ChoiceField(
        required=False,
        choices=lambda: [("", "Any"), *task_kinds()],
        widget=_select(),
    )
    datasource = forms.CharField(required=False, max_length=200, widget=_text("Name"))
    supervisor = forms.CharField(required=False, max_length=200, widget=_text("Id"))
    search = forms.CharField(required=False, max_length=200, label="Id contains", widget=_text("Part of the task's id"))


class LogFilter(_Filter):
    """Which lines of a log to show."""

    log_text = forms.CharField(required=False, max_length=200, label="Lines with", widget=_text("indexer=1, a word"))
    log_level = forms.ChoiceField(
        required=False,
        label="Level",
        choices=[("", "Any"), ("INFO", "Info and above"), ("WARN", "Warnings and above"), ("ERROR", "Errors")],
        widget=_select(),
    )


class SupervisorFilter(_Filter):
    """Which supervisors to list."""

    state = forms.ChoiceField(required=False, choices=[("", "Any"), *State.choices], widget=_select())
    search = forms.CharField(required=False, max_length=200, label="Name contains", widget=_text("Part of the id"))


class ConnectionFilter(_Filter):
    """Which connections to list."""

    kind = forms.ChoiceField(required=False, choices=[("", "Any"), *Connection.Kinds.choices], widget=_select())
    search = forms.CharField(required=False, max_length=63, label="Name contains", widget=_text("Part of the name"))


class NameFilter(_Filter):
    """Which topics or groups of a cluster to list."""

    search = forms.CharField(required=False, max_length=249, label="Name contains", widget=_text("Part of the name"))


class TopicFilter(NameFilter):
    """And whether Kafka's own are listed, too."""

    internal = forms.CharField(required=False, max_length=1, widget=forms.HiddenInput)


class DatasourceFilter(_Filter):
    """Which datasources to list."""

    search = forms.CharField(required=False, max_length=200, label="Name contains", widget=_text("Part of the name"))


class SegmentFilter(_Window):
    """Which segments to list: those whose intervals touch a time."""

    since = forms.DateTimeField(required=False, label="From (UTC)", widget=_moment())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=_moment())


class QuarantineFilterForm(_Filter, _Window):
    """Which quarantined records to list, and to act on. Its values are those of a ``QuarantineFilter``."""

    reason = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *((r, r.replace("_", " ")) for r in REASONS)],
        widget=_select(),
    )
    cause = forms.CharField(required=False, max_length=FINGERPRINT_LENGTH, widget=forms.HiddenInput)  # of a link
    state = forms.ChoiceField(required=False, choices=[("", "Any"), *QuarantinedRecord.State.choices], widget=_select())
    topic = forms.CharField(required=False, max_length=249, widget=_text("Name"))
    partition = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    since = forms.DateTimeField(required=False, label="Quarantined from (UTC)", widget=_moment())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=_moment())
    task = forms.CharField(required=False, max_length=300, label="By task", widget=_text("Id"))

    @property
    def wanted(self) -> QuarantineFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        return QuarantineFilter.of(self.cleaned_data)

    @property
    def of_address(self) -> dict[str, str]:
        """What is chosen, as REST's addresses have it."""
        return {self.add_prefix(name): str(value) for name, value in self.wanted.described().items()}


class CausesFilterForm(_Filter):
    """Which causes of the quarantine to list. Its values are those of a ``CauseFilter``."""

    show = forms.ChoiceField(required=False, choices=[("", "Waiting"), ("all", "All")], widget=_select())
    team = forms.ChoiceField(required=False, widget=_select())
    datasource = forms.CharField(required=False, max_length=200, widget=_text("Name"))
    reason = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((r, r.replace("_", " ")) for r in REASONS)], widget=_select()
    )
    cause = forms.CharField(required=False, max_length=FINGERPRINT_LENGTH, widget=forms.HiddenInput)  # of a link
    since = forms.DateTimeField(required=False, label="Seen since (UTC)", widget=_moment())

    def __init__(self, *args: Any, teams: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self, "team", [("", "Any"), *((name, name) for name in teams)])

    @property
    def wanted(self) -> CauseFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        return CauseFilter.of({**self.cleaned_data, "waiting": self.cleaned_data.get("show") != "all"})


class ChosenForm(forms.Form):
    """Which records of the list to act on: those ticked, or all that match its filter up to an id."""

    action = forms.ChoiceField(choices=[(a, a) for a in ("ingest", "produce", "purge")])
    scope = forms.ChoiceField(choices=[("ticked", ""), ("matching", "")])
    record = forms.TypedMultipleChoiceField(required=False, coerce=int)
    upto = forms.IntegerField(required=False, min_value=0, max_value=BIGGEST_KEY)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        given = [n for n in data.getlist("record") if n.isdecimal() and len(n) < 19]
        _offer(self, "record", [(n, n) for n in given])

    def choice(self, wanted: QuarantineFilter) -> Choice:
        """Of a valid form. ``wanted``: the list's filter."""
        if self.cleaned_data["scope"] == "ticked":
            return Choice(ids=tuple(self.cleaned_data["record"]))
        upto = self.cleaned_data["upto"]
        return Choice(filter=wanted, upto=BIGGEST_KEY if upto is None else upto)


class RecordForm(_Window):
    """Which record to look for: by its place, or by key and time."""

    topic = forms.CharField(max_length=249, widget=forms.TextInput(attrs={"class": "form-control"}))
    partition = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    offset = forms.IntegerField(
        required=False, min_value=0, max_value=LARGEST_OFFSET, widget=forms.NumberInput(attrs={"class": "form-control"})
    )
    key = forms.CharField(label="or key", required=False, max_length=4000, strip=False, widget=_text("As text, or 0x…"))
    since = forms.DateTimeField(required=False, label="written from (UTC)", widget=_moment())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=_moment())
    group = forms.CharField(
        label="Share group or supervisor",
        required=False,
        max_length=249,
        widget=forms.TextInput(attrs={"class": "form-control", "placeholder": "Any"}),
    )

    def clean(self) -> dict[str, Any]:
        given = {**(super().clean() or {})}
        by_key = bool(given.get("key"))
        if by_key and given.get("offset") is not None:
            self.add_error("key", "Give an offset or a key, not both.")
        needed = ("since", "until") if by_key else ("partition", "offset")
        for name in needed:
            if given.get(name) is None and name not in self.errors:
                self.add_error(name, "Needed to find a key." if by_key else "Needed, or else a key.")
        return given

    @property
    def wanted(self) -> Wanted:
        """Of a valid form."""
        given = self.cleaned_data
        key = given["key"]
        as_hex = _HEX.fullmatch(key)
        as_bytes = bytes.fromhex(as_hex[1]) if as_hex else key.encode()
        return Wanted(
            given["topic"],
            given["partition"],
            given["offset"],
            as_bytes if key else None,
            given["since"] if key else None,
            given["until"] if key else None,
        )
