"""The form that takes the supervisors of a Druid cluster over."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from controlplane.common.strict_json import MAX_BYTES
from controlplane.connections.selectors import list_connections
from controlplane.loading.druid_import import ImportOptions
from controlplane.teams.models import User
from controlplane.teams.selectors import teams_administered
from frontend.forms import json_values
from ingestion.specs.inputs.connection import Kind

_TOO_LARGE = f"It is larger than {MAX_BYTES:,} bytes. Send it in parts."


class ImportForm(forms.Form):
    """Druid's list as JSON text or as a file, and how its supervisors are to be taken over.

    ``listed`` becomes the list's values, ``document`` the text that they were read from.
    """

    file = forms.FileField(
        label="Druid's answer as a file",
        required=False,
        widget=forms.FileInput(attrs={"class": "form-control", "accept": ".json,application/json,text/plain"}),
    )
    document = forms.CharField(
        label="Or its JSON text",
        required=False,
        max_length=MAX_BYTES,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "form-control font-monospace", "rows": 8, "spellcheck": "false", "autocomplete": "off"}
        ),
    )
    team = forms.ChoiceField(
        label="Team",
        required=False,
        help_text="Owns the datasources that are new.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    connection = forms.ChoiceField(
        label="Connection",
        required=False,
        help_text="Replaces the Kafka cluster that each spec names.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    suspended = forms.BooleanField(
        label="Create new supervisors suspended",
        required=False,
        initial=True,
        help_text="Otherwise they start at once if they run in Druid. Existing supervisors keep their state.",
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        teams = list(teams_administered(user).values_list("name", flat=True))
        if len(teams) < 2:
            del self.fields["team"]
        else:
            self._set_choices("team", "Choose…", teams)
        clusters = list_connections(user, kind=Kind.KAFKA).filter(team__name__in=teams)
        names = sorted(set(clusters.values_list("name", flat=True)))
        self._set_choices("connection", "As the specs say", names)

    def _set_choices(self, name: str, nothing: str, choices: list[str]) -> None:
        cast(forms.ChoiceField, self.fields[name]).choices = [("", nothing), *((choice, choice) for choice in choices)]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return data
        data["document"] = self._text(data)
        if not data["document"].strip():
            raise forms.ValidationError("Choose the file of Druid's answer, or paste its text.")
        data["listed"] = json_values(data["document"])
        return data

    def _text(self, data: dict[str, Any]) -> str:
        file = data.get("file")
        content: bytes = data["document"].encode() if file is None else file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise forms.ValidationError(_TOO_LARGE)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not UTF-8 text.") from None

    def options(self, dry_run: bool) -> ImportOptions:
        data = self.cleaned_data
        return ImportOptions(
            dry_run=dry_run,
            suspended=data["suspended"],
            connection=data["connection"],
            team_name=data.get("team") or None,
        )
