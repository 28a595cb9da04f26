"""Logging in: the password, with a limit on failures, then what else the person has set up."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlsplit

from allauth.account.utils import perform_login
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.views import LoginWebAuthnView
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, PasswordResetConfirmView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from requests import RequestException

from controlplane.common import mail
from controlplane.login.adapters import describe_error, failed_page
from controlplane.login.oidc import PROVIDER_ID, OidcAdapter
from controlplane.login.password_resets import RESET_TOKENS, send_links
from frontend import login_throttle
from frontend.account_forms import FirstPasswordForm, ForgottenForm
from frontend.forms import LoginForm


class Login(LoginView):
    """The login page. After too many failures it answers 429 for a while, whatever the password."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(provider=settings.OIDC, provider_id=PROVIDER_ID, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        wait_s = login_throttle.seconds_to_wait(request)
        if wait_s:
            return self._too_many(wait_s)
        return super().post(request, *args, **kwargs)

    def _too_many(self, wait_s: int) -> HttpResponse:
        form = LoginForm(self.request, initial={"username": self.request.POST.get("username", "")[:150]})
        answer = self.render_to_response(self.get_context_data(form=form, wait_s=wait_s), status=429)
        answer["Retry-After"] = str(wait_s)
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """The password is right: a session, or the question for the second factor."""
        login_throttle.clear_failures(self.request)
        answer: HttpResponse = perform_login(self.request, form.get_user(), redirect_url=self.get_success_url())
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        login_throttle.count_failure(self.request)
        return super().form_invalid(form)


def forgotten(request: HttpRequest) -> HttpResponse:
    """Ask for a link by mail. The answer is one and the same, whoever has the address or nobody."""
    form = ForgottenForm(request.POST if request.method == "POST" and mail.is_configured() else None)
    is_submitted = form.is_bound and form.is_valid()
    if is_submitted and login_throttle.may_send_mail(request, form.cleaned_data["email"]):
        send_links(email=form.cleaned_data["email"], request=request)
    shown = {"form": form, "asked": is_submitted, "mail_works": mail.is_configured()}
    return render(
        request, "accounts/forgot_password.html", shown, status=400 if form.is_bound and not is_submitted else 200
    )


class SetPassword(PasswordResetConfirmView):
    """The page behind the link. It logs nobody in: a second factor is asked for as ever."""

    template_name = "accounts/set_password.html"
    form_class = FirstPasswordForm
    token_generator = RESET_TOKENS
    success_url = reverse_lazy("frontend:login")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "Your password is set. All earlier sessions and tokens have ended.")
        return super().form_valid(form)


class SecondFactor(AuthenticateView):
    """The question for a code or a passkey, between the password and the session."""

    template_name = "accounts/second_factor.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        kinds = Authenticator.objects.filter(user=self.stage.login.user).values_list("type", flat=True)
        return {**context, "kinds": set(kinds)}


class PasskeyLogin(LoginWebAuthnView):
    """A passkey instead of name and password. By GET, what the browser needs for it."""

    def form_invalid(self, form: Any) -> HttpResponse:
        faults = [fault for faults in form.errors.values() for fault in faults]
        messages.error(self.request, " ".join(dict.fromkeys(faults)))
        return redirect("frontend:login")


@never_cache
def to_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send somebody to the provider, with what must come back."""
    if settings.OIDC is None or provider_id != PROVIDER_ID:
        raise Http404
    if request.user.is_authenticated:
        return redirect("frontend:home")
    next_url = request.GET.get("next", "")
    after = next_url if url_has_allowed_host_and_scheme(next_url, allowed_hosts=None) else ""
    nonce = secrets.token_urlsafe(24)
    try:
        conversation = OidcAdapter(request, provider_id)
        address = conversation.openid_config["authorization_endpoint"]
        provider = conversation.get_provider()
        answer = provider.redirect(
            request, process=AuthProcess.LOGIN, next_url=after, auth_params={"nonce": nonce}, nonce=nonce
        )
    except (RequestException, OAuth2Error, KeyError, AttributeError, ValueError) as error:
        return failed_page(request, describe_error(error))
    return (
        answer if urlsplit(address).scheme in ("http", "https") else failed_page(request, "its address is not valid.")
    )


@never_cache
def from_provider(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """What the provider sends back: a code, changed for who it is."""
    if settings.OIDC is None or provider_id != PROVIDER_ID:
        raise Http404
    try:
        answer: HttpResponseBase = OAuth2CallbackView.adapter_view(OidcAdapter(request, provider_id))(request)
    except (KeyError, AttributeError, ValueError) as error:
        return failed_page(request, describe_error(error))
    return answer
