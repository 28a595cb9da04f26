"""The forms of teams and their people. Who may do what is the services' business."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django import forms

from controlplane.teams.roles import Role, Scope
from controlplane.teams.services import LONGEST_TOKEN

ROLES = [(role.value, f"{role.value}: {role.description}") for role in Role]
SCOPES = [(scope.value, f"{scope.value}: {scope.role.description}") for scope in Scope]


def _text(**attributes: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", **attributes})


class TeamForm(forms.Form):
    """A new team."""

    name = forms.CharField(
        label="Name",
        max_length=63,
        help_text="Lower-case letters, digits, '-' and '_'. The name is part of page addresses.",
        widget=_text(spellcheck="false", autocapitalize="none"),
    )


class AboutForm(TeamForm):
    """What a team is called, for the site's administrators, and what it is about."""

    description = forms.CharField(label="Description", required=False, max_length=500, widget=_text())
    field_order = ("description", "name")

    def __init__(self, *args: Any, renames: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if renames:
            self.fields["name"].help_text = (
                "A new name changes the addresses of the team's pages and the names of its service accounts. "
                "Lower-case letters, digits, '-' and '_'."
            )
        else:
            del self.fields["name"]


class RoleForm(forms.Form):
    """A member's role."""

    role = forms.ChoiceField(label="Role", choices=ROLES, widget=forms.Select(attrs={"class": "form-select"}))

    @property
    def chosen(self) -> Role:
        return Role(self.cleaned_data["role"])


class SureForm(forms.Form):
    """The answer to a question: it is meant."""

    sure = forms.BooleanField(widget=forms.HiddenInput, initial=True)


class OwnRoleForm(SureForm):
    """A role for oneself, once the question is answered."""

    role = forms.ChoiceField(choices=ROLES, widget=forms.HiddenInput)


class InviteForm(RoleForm):
    """Somebody who has a login."""

    username = forms.CharField(label="User name", max_length=150, widget=_text(spellcheck="false"))
    field_order = ("username", "role")


class InviteByLinkForm(RoleForm):
    """Somebody who may have no login yet."""

    email = forms.CharField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    field_order = ("email", "role")


class AccountForm(forms.Form):
    """A new service account."""

    name = forms.CharField(label="Name", max_length=63, widget=_text(spellcheck="false", autocapitalize="none"))


class TokenForm(forms.Form):
    """A new token, of a service account or, with ``for_self``, of oneself: that one may have no scope."""

    name = forms.CharField(label="Token name", max_length=100, required=False, widget=_text())
    scope = forms.ChoiceField(
        label="Scope",
        choices=SCOPES,
        help_text="The rights of a viewer, operator or admin of the team.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    days = forms.IntegerField(
        label="Expires after (days)",
        min_value=1,
        max_value=LONGEST_TOKEN.days,
        initial=90,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    datasources = forms.MultipleChoiceField(
        label="Datasources",
        required=False,
        help_text="Limit to these datasources. Leave empty for all.",
        widget=forms.SelectMultiple(attrs={"class": "form-select"}),
    )

    def __init__(self, *args: Any, datasources: list[str], for_self: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if for_self:
            scopes = cast(forms.ChoiceField, self.fields["scope"])
            scopes.required = False
            scopes.choices = [("", "all your rights"), *SCOPES]
            scopes.help_text = "The rights of a viewer, operator or admin, but never more than your own."
            self.fields["datasources"].help_text = "Limit to these datasources (needs a scope). Leave empty for all."
        if datasources:
            cast(forms.MultipleChoiceField, self.fields["datasources"]).choices = [(name, name) for name in datasources]
        else:
            del self.fields["datasources"]  # there is nothing to choose from

    @property
    def service_arguments(self) -> dict[str, Any]:
        """What a service that makes a token is given; the form is valid."""
        cleaned = self.cleaned_data
        return {
            "name": cleaned["name"],
            "scope": Scope(cleaned["scope"]) if cleaned["scope"] else None,
            "datasources": cleaned.get("datasources", []),
            "lifetime": timedelta(days=cleaned["days"]),
        }


class PeopleFilter(forms.Form):
    """Which people a list shows."""

    search = forms.CharField(label="Name or address", required=False, max_length=200, widget=_text())
    team = forms.CharField(label="Team", required=False, max_length=63, widget=_text())
    active = forms.ChoiceField(
        label="Active",
        required=False,
        choices=[("", "Any"), ("yes", "active"), ("no", "deactivated")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )


class PersonForm(forms.Form):
    """A new user."""

    username = forms.CharField(label="User name", max_length=150, widget=_text(spellcheck="false"))
    email = forms.CharField(
        label="E-mail address (optional)",
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


class PasswordForm(forms.Form):
    """A password of one's own."""

    password = forms.CharField(
        label="Password",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="Repeat password",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if "password" in values and "again" in values and values["password"] != values["again"]:
            self.add_error("again", "The two passwords are not the same.")
        return values


class JoinForm(PasswordForm):
    """A login of one's own."""

    username = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "username", "spellcheck": "false"}),
    )
    field_order = ("username", "password", "again")
