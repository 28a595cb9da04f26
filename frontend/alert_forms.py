"""The forms of alerts: rules with the parameters of their kind, receivers, silences, and the history's filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone

from controlplane.alerts.models import Event, Receiver, Rule
from controlplane.alerts.rule_kinds import KINDS, Kind, Param
from controlplane.alerts.selectors import list_receivers
from controlplane.common import mail
from controlplane.common.errors import HeadgateError
from controlplane.teams.models import User
from controlplane.teams.selectors import teams_administered

_LENGTHS = (
    ("3600", "an hour"),
    ("14400", "4 hours"),
    ("86400", "a day"),
    ("604800", "a week"),
    ("2592000", "30 days"),
)


def _line(**attrs: Any) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", **attrs})


def _number() -> forms.NumberInput:
    return forms.NumberInput(attrs={"class": "form-control"})


def _select() -> forms.Select:
    return forms.Select(attrs={"class": "form-select"})


class ServiceErrorForm(forms.Form):
    """Faults of a service come to the fields that they are about."""

    def place(self, error: HeadgateError) -> None:
        """Each fault at its field; what is of none stands above."""
        if not error.errors:
            self.add_error(None, error.detail)
        for fault in error.errors:
            name = fault.path.split("[")[0].replace(".", "_")
            self.add_error(name if name in self.fields else None, fault.message)


class RuleForm(ServiceErrorForm):
    """A rule of one kind. ``stored``: the one that is changed; None for a new one."""

    team = forms.ChoiceField(label="Team", widget=_select())
    name = forms.CharField(label="Name", max_length=100, widget=_line())
    datasource = forms.CharField(
        label="Datasource",
        required=False,
        max_length=200,
        widget=_line(),
        help_text="The rule covers its supervisors too. Leave empty for the whole team.",
    )
    hold_s = forms.IntegerField(
        label="Fires after (s)",
        min_value=0,
        max_value=86_400,
        widget=_number(),
        help_text="The condition must hold this long before the alert fires.",
    )
    clear_s = forms.IntegerField(
        label="Ends after (s)",
        min_value=0,
        max_value=86_400,
        widget=_number(),
        help_text="The condition must be gone this long before the alert ends.",
    )
    receivers = forms.MultipleChoiceField(
        label="Receivers", required=False, widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})
    )
    enabled = forms.BooleanField(
        label="Enabled", required=False, initial=True, widget=forms.CheckboxInput(attrs={"class": "form-check-input"})
    )

    def __init__(self, *args: Any, user: User, kind: Kind, stored: Rule | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.stored = kind, stored
        teams = list(teams_administered(user).values_list("name", flat=True))
        for param in kind.params:
            self.fields[f"params_{param.name}"] = _field_of(param)
        self.initial = {**self._values(), **self.initial}
        receivers = [r for r in list_receivers(user, stored.team.name if stored else "") if r.team.name in teams]
        receivers.sort(key=lambda receiver: receiver.team.name != self.initial.get("team"))
        with_team = len(teams) > 1 and stored is None
        self.fields["receivers"].choices = [  # type: ignore[attr-defined]
            (str(r.pk), f"{r.name} ({r.get_kind_display()}{', team ' + r.team.name if with_team else ''})")
            for r in receivers
        ]
        if stored is None:
            self.fields["team"].choices = [(n, n) for n in teams]  # type: ignore[attr-defined]
        else:
            del self.fields["team"]
        if kind.intervals is not None:
            del self.fields["hold_s"], self.fields["clear_s"]
        params = [f"params_{p.name}" for p in kind.params]
        self.order_fields(["team", "name", "datasource", *params, "hold_s", "clear_s", "receivers", "enabled"])

    def _values(self) -> dict[str, Any]:
        kind, stored = self.kind, self.stored
        params = stored.params if stored else {p.name: p.default for p in kind.params}
        values = {f"params_{name}": value for name, value in params.items()}
        if stored is None:
            return {**values, "name": kind.label, "hold_s": kind.hold_s, "clear_s": kind.clear_s}
        return {
            **values,
            "name": stored.name,
            "datasource": stored.datasource.name if stored.datasource else "",
            "hold_s": stored.hold_s,
            "clear_s": stored.clear_s,
            "enabled": stored.enabled,
            "receivers": [str(r.pk) for r in stored.receivers.all()],
        }

    @property
    def service_arguments(self) -> dict[str, Any]:
        """Of a valid form, as a service takes it."""
        values = self.cleaned_data
        arguments: dict[str, Any] = {
            name: values[name] for name in ("name", "enabled", "hold_s", "clear_s") if name in values
        }
        params = {p.name: values[f"params_{p.name}"] for p in self.kind.params}
        numbers = [int(pk) for pk in values["receivers"]]
        return {**arguments, "datasource": values["datasource"].strip() or None, "params": params, "receivers": numbers}


def _field_of(param: Param) -> forms.Field:
    if param.unit == "choice":
        return forms.ChoiceField(label=param.label, choices=[(c, c) for c in param.choices], widget=_select())
    if param.unit == "text":
        return forms.CharField(label=param.label, required=False, max_length=16, widget=_line())
    return forms.IntegerField(label=param.label, min_value=param.least, max_value=param.most, widget=_number())


_URL_HELP = {
    "slack": "Address of an incoming webhook of Slack: https://hooks.slack.com/services/….",
    "webhook": "Headgate sends each message there by POST, as JSON.",
}


class ReceiverForm(ServiceErrorForm):
    """A receiver of one kind. What is stored of its address and secret is never filled in again."""

    team = forms.ChoiceField(label="Team", widget=_select())
    name = forms.CharField(label="Name", max_length=100, widget=_line())
    addresses = forms.CharField(
        label="Addresses",
        max_length=6000,
        required=False,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
        help_text="E-mail addresses, comma-separated or one per line.",
    )
    url = forms.CharField(label="Address", max_length=1000, required=False, widget=_line(type="url"))
    secret = forms.CharField(
        label="Secret",
        max_length=200,
        required=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
        help_text="16 characters or more. Headgate signs each message with it and never shows it again.",
    )

    def __init__(self, *args: Any, user: User, kind: str, stored: Receiver | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.stored = kind, stored
        absent = {"email": ("url", "secret"), "slack": ("addresses", "secret"), "webhook": ("addresses",)}[kind]
        for name in absent:
            del self.fields[name]
        if "url" in self.fields:
            self.fields["url"].help_text = _URL_HELP[kind]
        if kind == "email" and not mail.is_configured():
            warning = "This site sends no mail yet: set HEADGATE_EMAIL_URL."
            self.fields["addresses"].help_text += f" {warning}"
        if stored is None:
            names = list(teams_administered(user).values_list("name", flat=True))
            self.fields["team"].choices = [(n, n) for n in names]  # type: ignore[attr-defined]
            return
        del self.fields["team"]
        self.initial = {"name": stored.name, "addresses": "\n".join(stored.addresses), **self.initial}
        if "url" in self.fields:
            stored_parts = "it and the secret" if kind == "webhook" else "it"
            self.fields["url"].help_text = f"Now {stored.shown}. Leave empty to keep {stored_parts}."

    @property
    def service_arguments(self) -> dict[str, Any]:
        """Of a valid form, as a service takes it."""
        values: dict[str, Any] = {
            name: self.cleaned_data[name] for name in ("name", "url", "secret") if name in self.cleaned_data
        }
        if "addresses" in self.cleaned_data:
            text = self.cleaned_data["addresses"].replace(",", "\n")
            values["addresses"] = [line.strip() for line in text.splitlines() if line.strip()]
        return values


class SilenceForm(ServiceErrorForm):
    """For how long, and why. What it is of stands in the address."""

    length = forms.ChoiceField(label="Duration", choices=_LENGTHS, widget=_select())
    reason = forms.CharField(label="Reason", max_length=500, widget=_line())

    @property
    def ends_at(self) -> Any:
        """Of a valid form."""
        return timezone.now() + timedelta(seconds=int(self.cleaned_data["length"]))


class HistoryFilter(forms.Form):
    """What of the history is shown."""

    event = forms.ChoiceField(
        label="Event", required=False, choices=[("", "all"), *Event.Transition.choices], widget=_select()
    )
    kind = forms.ChoiceField(
        label="Kind",
        required=False,
        choices=[("", "all"), *((k.code, k.label) for k in KINDS.values())],
        widget=_select(),
    )
    subject = forms.CharField(label="Supervisor or datasource", required=False, max_length=200, widget=_line())

    def chosen(self, name: str) -> str:
        """Empty for what is no choice."""
        return str(self.cleaned_data.get(name, "")) if self.is_valid() or hasattr(self, "cleaned_data") else ""
