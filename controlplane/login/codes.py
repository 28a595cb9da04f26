"""Codes of a second factor: each is taken once, and few may be wrong in a row.

What is counted is kept in the database beside the factor, not in the cache: without the cache nobody may try on.
Whoever tries knows the password already, so this keeps out nobody whose password is their own.
"""

from __future__ import annotations

import base64
import time
from enum import Enum
from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.utils import decrypt
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm, LoginWebAuthnForm
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.crypto import constant_time_compare

from controlplane.common.text import storable
from controlplane.login.login_audit import record_wrong_code
from controlplane.teams.models import User
from ingestion.specs.limits import in_one_line

MAX_WRONG_CODES = 5
WINDOW_S = 300
LONGEST_NAME = 60
UNREADABLE = "The passkey's answer is not valid for this login. Try again."


class CodeResult(Enum):
    """What a code is worth."""

    RIGHT = "right"
    WRONG = "The code is wrong or was used before."
    WAIT = f"Too many wrong codes. Wait {WINDOW_S // 60} minutes, then try again."


def try_code(user: User, code: str) -> tuple[CodeResult, Authenticator | None]:
    """Take a code of the user's app or of the recovery codes, and the factor that it is of."""
    with transaction.atomic():
        # One try at a time: two at once must not both be taken, nor both be counted as one.
        factors = list(Authenticator.objects.select_for_update().filter(user=user).order_by("pk"))
        counting_factor = next((f for f in factors if f.type == Authenticator.Type.TOTP), None) or next(
            iter(factors), None
        )
        if counting_factor is None:
            return CodeResult.WRONG, None
        wrong = [at for at in counting_factor.data.get("wrong_at", ()) if at > time.time() - WINDOW_S]
        if len(wrong) >= MAX_WRONG_CODES:
            return CodeResult.WAIT, None  # the trail has the wrong ones before it
        cleaned = "".join(code.split()).replace("-", "")
        factor = next((f for f in factors if storable(cleaned) and _use_code(f, cleaned)), None)
        if factor is None:
            counting_factor.data["wrong_at"] = [*wrong, time.time()]
            counting_factor.save(update_fields=["data"])
            record_wrong_code(user)
            return CodeResult.WRONG, None
        return CodeResult.RIGHT, factor


def note_first_code(factor: Authenticator, code: str) -> None:
    """The code with which an app was set up is used, too."""
    factor.data["last_counter"] = max(_matching_counters(factor, "".join(code.split())), default=0)
    factor.save(update_fields=["data"])


def _use_code(factor: Authenticator, code: str) -> bool:
    if factor.type == Authenticator.Type.RECOVERY_CODES:
        return bool(factor.wrap().validate_code(code))
    if factor.type != Authenticator.Type.TOTP:
        return False
    fitting = [c for c in _matching_counters(factor, code) if c > factor.data.get("last_counter", 0)]
    if not fitting:
        return False
    factor.data.update({"last_counter": max(fitting), "wrong_at": []})
    factor.save(update_fields=["data"])
    return True


def _matching_counters(factor: Authenticator, code: str) -> list[int]:
    """The half minutes whose code this is."""
    key = base64.b32decode(decrypt(factor.data["secret"]))
    now, tolerance = int(time.time()) // app_settings.TOTP_PERIOD, app_settings.TOTP_TOLERANCE
    codes = HOTP(key, app_settings.TOTP_DIGITS, SHA1())  # noqa: S303  # what apps compute (RFC 6238)
    window = range(now - tolerance, now + tolerance + 1)
    return [counter for counter in window if constant_time_compare(codes.generate(counter), code)]


class CodeForm(AuthenticateForm):
    """The code that a login asks for after the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = "Code"
        longest = max(app_settings.TOTP_DIGITS, app_settings.RECOVERY_CODE_DIGITS) + 10
        self.fields["code"].widget.attrs |= {"class": "form-control", "placeholder": "", "maxlength": longest}

    def clean_code(self) -> str:
        """Raises ``ValidationError`` with what is wrong."""
        code = str(self.cleaned_data["code"])
        verdict, self.authenticator = try_code(self.user, code)
        if verdict is not CodeResult.RIGHT:
            raise ValidationError(verdict.value)
        return code


class NewAppForm(ActivateTOTPForm):
    """The first code of an authenticator app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs |= {"class": "form-control", "placeholder": "", "maxlength": 20}


class _PasskeyForm(forms.Form):
    """What all forms with a passkey's answer check before allauth reads it: it may hold anything."""

    def clean(self) -> dict[str, Any]:
        try:
            return dict(super().clean() or {})
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, InvalidSignature) as error:
            raise ValidationError(UNREADABLE) from error

    def clean_credential(self) -> Any:
        """Raises ``ValidationError``."""
        if not isinstance(self.cleaned_data["credential"], dict):
            raise ValidationError(UNREADABLE)
        inherited = getattr(super(), "clean_credential", None)
        try:
            return inherited() if inherited else self.cleaned_data["credential"]
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, InvalidSignature) as error:
            raise ValidationError(UNREADABLE) from error


class PasskeyForm(_PasskeyForm, AuthenticateWebAuthnForm):
    """A passkey after the password."""


class PasskeyLoginForm(_PasskeyForm, LoginWebAuthnForm):
    """A passkey instead of the password."""


class NewPasskeyForm(_PasskeyForm, AddWebAuthnForm):
    """A passkey to be added."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = "Name"
        self.fields["name"].widget.attrs |= {"class": "form-control", "maxlength": LONGEST_NAME}
        self.initial["name"] = "Passkey"

    def clean_passwordless(self) -> bool:
        """Each passkey is good for both, and so its device must have verified its owner."""
        return True

    def clean_name(self) -> str:
        """Raises ``ValidationError``."""
        name = str(self.cleaned_data["name"]).strip() or "Passkey"
        if len(name) > LONGEST_NAME or not in_one_line(name) or not storable(name):
            raise ValidationError(f"A name has at most {LONGEST_NAME} characters, in one line.")
        return name


def has_second_factor(user: User) -> bool:
    """Whether a login needs more than the password: recovery codes alone are none."""
    return bool(get_adapter().is_mfa_enabled(user, [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]))
