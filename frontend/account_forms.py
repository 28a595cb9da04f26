"""The forms of one's own account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm

from controlplane.login.reauthentication import failed_reauthentication
from controlplane.teams.models import User

_INPUT = {"class": "form-control"}


class NewPasswordForm(PasswordChangeForm):
    """Django's, in Bootstrap's clothes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs |= _INPUT
            field.widget.attrs.pop("autofocus", None)


class FirstPasswordForm(SetPasswordForm):
    """Django's for who has no old password to give, in Bootstrap's clothes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs |= _INPUT


class ForgottenForm(forms.Form):
    """Whose password is forgotten."""

    email = forms.EmailField(
        label="Your e-mail address", widget=forms.EmailInput(attrs={**_INPUT, "autocomplete": "email"})
    )


class NameForm(forms.ModelForm):
    """What others may call a person."""

    class Meta:
        model = User
        fields = ("first_name", "last_name")
        widgets = {
            "first_name": forms.TextInput(attrs={**_INPUT, "autocomplete": "given-name"}),
            "last_name": forms.TextInput(attrs={**_INPUT, "autocomplete": "family-name"}),
        }


class EmailForm(forms.Form):
    """One's own address."""

    email = forms.EmailField(
        label="E-mail address",
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs={**_INPUT, "autocomplete": "email"}),
    )


class AgainForm(forms.Form):
    """Who is logged in shows once more who they are: by the password, or where there is none by a code."""

    secret = forms.CharField(max_length=4096, strip=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        self.by_password = user.has_usable_password()
        kind = forms.PasswordInput if self.by_password else forms.TextInput
        complete = "current-password" if self.by_password else "one-time-code"
        self.fields["secret"].widget = kind(attrs={**_INPUT, "autocomplete": complete})
        self.fields["secret"].label = "Password" if self.by_password else "Code"

    def clean_secret(self) -> str:
        secret = str(self.cleaned_data["secret"])
        fault = failed_reauthentication(self._user, secret)
        if fault:
            raise forms.ValidationError(fault)
        return secret
