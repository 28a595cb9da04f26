"""allauth's questions to this site, answered."""

from __future__ import annotations

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from requests import RequestException

from controlplane.common.client_address import current_address
from controlplane.common.errors import NotAllowed
from controlplane.connections.secrets import seal, unseal
from controlplane.login.groups import apply_groups
from controlplane.login.login_audit import record_login
from controlplane.login.oidc import PROVIDER_ID, oidc_provider, social_app
from controlplane.login.reauthentication import note_confirmed
from controlplane.login.sso_login import create_user
from controlplane.teams.models import User

log = logging.getLogger(__name__)
_AUTH_HASH_KEY = "login_begun"  # what a login was bound to when its password was taken


class AccountAdapter(DefaultAccountAdapter):
    """Nobody signs up; pages speak for themselves; a login that was begun before a new password never ends."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """None of allauth's: our pages say what happened."""

    def is_safe_url(self, url: str) -> bool:
        """Addresses of this site only, where allauth would take every name the site answers to."""
        return url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def get_client_ip(self, request: HttpRequest) -> str:
        return current_address()

    def pre_login(self, request: HttpRequest, user: User, **about: Any) -> HttpResponse | None:
        request.session[_AUTH_HASH_KEY] = user.get_session_auth_hash()
        answer: HttpResponse | None = super().pre_login(request, user, **about)
        return answer

    def login(self, request: HttpRequest, user: User) -> None:
        auth_hash = request.session.pop(_AUTH_HASH_KEY, "")
        if (
            not user.is_active
            or user.service_of_id is not None
            or not constant_time_compare(auth_hash, user.get_session_auth_hash())
        ):
            request.session.flush()
            raise ImmediateHttpResponse(redirect("frontend:login"))
        super().login(request, user)
        note_confirmed(request)
        record_login(user, "pages")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        messages.error(request, "This login is deactivated. A site administrator can activate it again.")
        return redirect("frontend:login")


class SecondFactorAdapter(DefaultMFAAdapter):
    """Secrets of second factors are sealed as those of specs are."""

    def encrypt(self, text: str) -> str:
        return seal({"secret": text})

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text)["secret"]

    def get_totp_label(self, user: User) -> str:
        return user.get_username()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": "Headgate"}

    def get_public_key_credential_user_entity(self, user: User) -> dict[str, Any]:
        entity: dict[str, Any] = super().get_public_key_credential_user_entity(user)
        return {**entity, "name": user.get_username(), "display_name": user.get_username()}


class ProviderAdapter(DefaultSocialAccountAdapter):
    """Whose login it is, when the provider has said who it is; and pages for what goes wrong there."""

    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        is_ours = settings.OIDC is not None and provider in (None, PROVIDER_ID, "openid_connect")
        return [social_app(oidc_provider())] if is_ours else []

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        expected = sociallogin.state.get("nonce")
        if not expected or not constant_time_compare(expected, sociallogin.nonce or ""):
            raise ImmediateHttpResponse(failed_page(request, "its answer belongs to another login attempt (nonce)."))
        try:
            if not sociallogin.is_existing:
                sociallogin.user = create_user(
                    provider=oidc_provider(), claims=sociallogin.claims, account=sociallogin.account
                )
        except NotAllowed as error:
            raise ImmediateHttpResponse(refused_page(request, error.detail)) from error
        if sociallogin.user.is_active:
            warnings = apply_groups(user=sociallogin.user, provider=oidc_provider(), groups=sociallogin.claims.groups)
            for sentence in warnings:
                messages.warning(request, sentence)

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        if error == AuthError.CANCELLED:
            raise ImmediateHttpResponse(refused_page(request, f"You stopped the login at {oidc_provider().label}."))
        if exception is None:
            raise ImmediateHttpResponse(failed_page(request, "its answer belongs to no login attempt of this browser."))
        raise ImmediateHttpResponse(failed_page(request, describe_error(exception)))


def refused_page(request: HttpRequest, why: str) -> HttpResponse:
    """The page for who may not come in."""
    return render(request, "accounts/provider.html", {"why": why}, status=403)


def failed_page(request: HttpRequest, why: str) -> HttpResponse:
    """The page for a provider that is away or whose answer is wrong."""
    log.warning("the login with %s failed: %s", oidc_provider().issuer, why)
    context = {"why": f"The login with {oidc_provider().label} failed: {why}", "provider_failed": True}
    return render(request, "accounts/provider.html", context, status=502)


def describe_error(error: Exception) -> str:
    """What went wrong, without what a request may hold of secrets."""
    if isinstance(error, RequestException):
        answer = error.response
        return f"it answered {answer.status_code}." if answer is not None else "it does not answer."
    if isinstance(error, OAuth2Error) and not str(error).startswith("Error retrieving"):
        return f"{error}."
    return "it gave no token."
