"""Which entries of the audit trail to list."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.teams.audit import ACTIONS, AuditFilter
from frontend.filters import Filter, Window, choice_input, set_choices, text_input, time_input

_ACTIONS = sorted({action for actions in ACTIONS.values() for action in actions})


class AuditForm(Filter, Window):
    """Its values are those of an ``AuditFilter``, and the team."""

    team = forms.ChoiceField(required=False, widget=choice_input())
    user = forms.CharField(required=False, max_length=150, widget=text_input("Name"))
    target = forms.ChoiceField(
        required=False,
        label="What",
        choices=[("", "Any"), *((name, name.replace("_", " ")) for name in ACTIONS)],
        widget=choice_input(),
    )
    target_id = forms.CharField(required=False, max_length=300, label="Id", widget=text_input("Id"))
    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *((name, name.replace("_", " ")) for name in _ACTIONS)],
        widget=choice_input(),
    )
    text = forms.CharField(required=False, max_length=200, label="Contains text", widget=text_input("Anywhere"))
    since = forms.DateTimeField(required=False, label="From (UTC)", widget=time_input())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=time_input())

    def __init__(self, *args: Any, teams: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, "team", teams)

    @property
    def wanted(self) -> AuditFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        cleaned = self.cleaned_data
        plain = {name: cleaned.get(name) or "" for name in ("target", "target_id", "action", "team", "text")}
        return AuditFilter(
            username=cleaned.get("user") or "", since=cleaned.get("since"), until=cleaned.get("until"), **plain
        )
