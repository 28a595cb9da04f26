"""The form of a saved query."""

from __future__ import annotations

from typing import Any

from django import forms
from django.urls import reverse

from controlplane.query.models import SavedQuery
from controlplane.query.saved import MAX_DESCRIPTION, MAX_NAME
from controlplane.teams.models import User
from controlplane.teams.selectors import list_teams
from frontend.alert_forms import ServiceErrorForm
from frontend.filters import Filter, set_choices, text_input
from ingestion.specs.messages.sql import MAX_STATEMENT

_EDITOR = {"class": "form-control", "rows": 8, "spellcheck": "false", "autocomplete": "off", "data-sql-editor": ""}
_LINE = {"class": "form-control", "autocomplete": "off"}


class StatementForm(forms.Form):
    """The editor. ``nonce``: for the styles that it makes."""

    statement = forms.CharField(
        label="Statement", max_length=MAX_STATEMENT, strip=False, widget=forms.Textarea(attrs=_EDITOR)
    )

    def __init__(self, *args: Any, nonce: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["statement"].widget.attrs |= {"data-nonce": nonce, "data-words": reverse("frontend:query-words")}


class SavedQueryForm(StatementForm, ServiceErrorForm):
    """A saved query. ``stored``: the one that is changed; only its owner chooses the team."""

    name = forms.CharField(label="Name", max_length=MAX_NAME, widget=forms.TextInput(attrs=_LINE))
    description = forms.CharField(
        label="Description",
        max_length=MAX_DESCRIPTION,
        required=False,
        widget=forms.Textarea(attrs={**_LINE, "rows": 2}),
    )
    team = forms.ChoiceField(
        label="Shared with",
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="All members of the team see it. Its admins can also change and delete it.",
    )
    field_order = ("name", "description", "team", "statement")

    def __init__(self, *args: Any, user: User, stored: SavedQuery | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        team = stored.team.name if stored and stored.team else ""
        if stored is not None:
            values = {"name": stored.name, "description": stored.description, "statement": stored.statement}
            self.initial = {**values, "team": team, **self.initial}
        if stored is None or stored.owner_id == user.pk:
            names = list(list_teams(user).values_list("name", flat=True)[:500])
            set_choices(self, "team", [("", "nobody"), *((name, f"team {name}") for name in names)])
        else:
            set_choices(self, "team", [(team, f"team {team}")])


class SavedQueryFilter(Filter):
    """Which saved queries to list."""

    search = forms.CharField(
        required=False, max_length=200, label="Name or description contains", widget=text_input("Part of it")
    )
