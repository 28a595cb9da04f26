"""One's own account: name, password, second factors, sessions, tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate
from urllib.parse import urlencode

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.mfa.webauthn.views import AddWebAuthnView
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from django.views.generic.edit import FormView

from controlplane.common import mail
from controlplane.common.errors import HeadgateError
from controlplane.datasources.models import Datasource
from controlplane.login import email_address, second_factors, sessions
from controlplane.login.codes import NewAppForm, NewPasskeyForm, note_first_code
from controlplane.login.mfa_policy import must_add_factor
from controlplane.login.models import Session
from controlplane.login.reauthentication import is_fresh, note_confirmed
from controlplane.teams import selectors, services
from controlplane.teams.models import User
from frontend import login_throttle
from frontend.account_forms import AgainForm, EmailForm, NameForm, NewPasswordForm
from frontend.team_forms import TokenForm
from frontend.token_tables import SESSIONS, TOKENS_OF_ONE
from frontend.views.common import P, PageRequest, PageView, act, error_text, is_sure, page
from frontend.views.token_revocation import ask_to_revoke

ACCOUNT = "frontend:account"
AGAIN = "frontend:login-again"


def fresh(view: PageView[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Only for those who have shown lately who they are: a session that was left open changes nothing of this."""

    def guarded(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if is_fresh(request):
            return view(request, *args, **kwargs)
        back = request.get_full_path() if request.method == "GET" else reverse(ACCOUNT)
        if request.method == "POST":
            messages.warning(request, "Nothing has changed yet. Confirm who you are, then try again.")
        return redirect(f"{reverse(AGAIN)}?{urlencode({'next': back})}")

    return page(update_wrapper(guarded, view))


@page
def index(request: PageRequest) -> HttpResponse:
    """Everything about the account on one page."""
    return _index(request)


def _index(request: PageRequest, status: int = 200, **more: Any) -> HttpResponse:
    factors = second_factors.list_factors(request.user)
    table, logins = (
        s.table_for(request.GET) if request.method == "GET" else s.static for s in (TOKENS_OF_ONE, SESSIONS)
    )
    shown = {
        "name_form": NameForm(instance=request.user),
        "email_form": EmailForm(initial={"email": request.user.email}),
        "password_form": NewPasswordForm(request.user),
        "token_form": _token_form(request),
        "has_password": request.user.has_usable_password(),
        "factors": factors,
        "has_app": any(f.kind == "totp" for f in factors),
        "logins": logins,
        "sessions": logins.arranged(sessions.list_sessions(request.user, request.session.session_key)),
        "table": table,
        "tokens": selectors.list_tokens(request.user).order_by(*table.ordering),
        "mail_works": mail.is_configured(),
    }
    return render(request, "accounts/account.html", {**shown, **more}, status=status)


def _token_form(request: PageRequest, data: Any = None) -> TokenForm:
    names = Datasource.objects.visible_to(request.user).order_by("name").values_list("name", flat=True)
    return TokenForm(data, datasources=list(names), for_self=True, initial={"days": 30})


@require_POST
@page
def name(request: PageRequest) -> HttpResponse:
    """Change one's own first and last name."""
    form = NameForm(request.POST, instance=User.objects.get(pk=request.user.pk))
    if not form.is_valid():
        return _index(request, 400, name_form=form)
    form.save()
    messages.success(request, "Your name is changed.")
    return redirect(ACCOUNT)


@require_POST
@fresh
def email(request: PageRequest) -> HttpResponse:
    """Another address, which counts when it is confirmed, where mail can be sent; or none."""
    form = EmailForm(request.POST)
    if not form.is_valid():
        return _index(request, 400, email_form=form)
    new_address = form.cleaned_data["email"]
    if new_address and mail.is_configured() and not login_throttle.may_send_mail(request, new_address):
        form.add_error("email", "Too many mails were requested. Wait five minutes, then try again.")
        return _index(request, 429, email_form=form)
    try:
        mailed = email_address.change_address(
            user=request.user,
            email=new_address,
            address=lambda secret: mail.link(reverse("frontend:account-email-confirm", args=[secret]), request),
        )
    except HeadgateError as error:
        form.add_error("email", error_text(error))
        return _index(request, error.status, email_form=form)
    done = f"A link was mailed to {new_address}. Open it to confirm the address." if mailed else ""
    messages.success(
        request, done or ("Your e-mail address is changed." if new_address else "You now have no e-mail address.")
    )
    return redirect(ACCOUNT)


@page
def confirm_email(request: PageRequest, secret: str) -> HttpResponse:
    """What a mailed link leads to: make the address one's own."""
    new_address = email_address.address_in_secret(request.user, secret)
    if request.method == "POST":
        return act(
            request,
            lambda: email_address.confirm_address(user=request.user, secret=secret),
            f"Your e-mail address is {new_address}.",
            ACCOUNT,
        )
    return render(request, "accounts/email.html", {"email": new_address})


@require_POST
@page
def password(request: PageRequest) -> HttpResponse:
    """Another password. It ends all other sessions, and all tokens."""
    wait_s = login_throttle.seconds_to_wait(request, request.user.username)
    form = NewPasswordForm(User.objects.get(pk=request.user.pk), request.POST)
    if wait_s or not form.is_valid():
        if wait_s:
            messages.error(request, f"Too many wrong passwords. Wait {wait_s} seconds, then try again.")
        elif "old_password" in form.errors:
            login_throttle.count_failure(request, request.user.username)
        return _index(request, 400, password_form=NewPasswordForm(request.user) if wait_s else form)
    user = form.save()
    update_session_auth_hash(request, user)
    Session.objects.filter(user=user).exclude(pk=request.session.session_key or "").delete()
    messages.success(request, "Your password is changed. Your other sessions and your tokens have ended.")
    return redirect(ACCOUNT)


@page
def again(request: PageRequest) -> HttpResponseBase:
    """Ask once more who it is, and go on."""
    to = request.POST.get("next") or request.GET.get("next") or ""
    to = to if url_has_allowed_host_and_scheme(to, allowed_hosts=None) else reverse(ACCOUNT)
    wait_s = login_throttle.seconds_to_wait(request, request.user.username) if request.method == "POST" else 0
    form = AgainForm(request.POST if request.method == "POST" and not wait_s else None, user=request.user)
    if request.method == "POST" and not wait_s and form.is_valid():
        login_throttle.clear_failures(request, request.user.username)
        note_confirmed(request)
        return redirect(to)
    if form.is_bound:
        login_throttle.count_failure(request, request.user.username)
    status = 429 if wait_s else 400 if form.is_bound else 200
    possible = form.by_password or bool(second_factors.list_factors(request.user))
    shown = {"form": form, "next": to, "wait_s": wait_s, "possible": possible}
    return render(request, "accounts/reauthenticate.html", shown, status=status)


class _NewFactorView(FormView):
    """What the pages that add a second factor share, beside allauth's views."""

    request: PageRequest
    template_name: str
    kind: str
    done: str

    def get_success_url(self) -> str:
        return reverse("frontend:account-codes")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), **kwargs, "demanded": must_add_factor(self.request.user)}

    def render_to_response(self, context: dict[str, Any], **answer: Any) -> HttpResponse:
        return render(self.request, self.template_name, context, **answer)

    def form_invalid(self, form: Any) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=400)

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        User.objects.select_for_update().get(pk=self.request.user.pk)  # one at a time: a user has one set of codes
        answer = super().form_valid(form)
        second_factors.record_added(self.request.user, self.kind)
        messages.success(self.request, self.done)
        return answer


class _App(_NewFactorView, ActivateTOTPView):
    """Set up an authenticator app: its key as a picture and as text, and the first code."""

    template_name = "accounts/app.html"
    form_class = NewAppForm
    kind = Authenticator.Type.TOTP
    done = "Your authenticator app is set up. Keep these codes in a safe place outside it."

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if Authenticator.objects.filter(user=self.request.user, type=self.kind).exists():
            messages.error(request, "You have an authenticator app already. Remove it first.")
            return redirect(ACCOUNT)
        return super().dispatch(request, *args, **kwargs)

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        factor = Authenticator.objects.get(user=self.request.user, type=self.kind)
        note_first_code(factor, form.cleaned_data["code"])
        return answer


class _Passkey(_NewFactorView, AddWebAuthnView):
    """Add a passkey, which logs in alone or comes after the password."""

    template_name = "accounts/passkey.html"
    form_class = NewPasskeyForm
    kind = Authenticator.Type.WEBAUTHN
    done = "Your passkey is added. Keep these codes in a safe place outside it."

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The device has to keep the passkey and to verify its owner: without a password nothing else is asked."""
        context = super().get_context_data(**kwargs)
        selection = context["js_data"]["creation_options"]["publicKey"]["authenticatorSelection"]
        selection |= {"residentKey": "required", "requireResidentKey": True, "userVerification": "required"}
        return context


class _Codes(_NewFactorView, GenerateRecoveryCodesView):
    """The recovery codes that are left. A POST replaces all of them."""

    template_name = "accounts/codes.html"
    kind = Authenticator.Type.RECOVERY_CODES
    done = "These are your new recovery codes. The old codes no longer work."

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        factors = Authenticator.objects.filter(user=self.request.user)
        if not factors.exclude(type=self.kind).exists():
            messages.error(request, "Recovery codes replace a second factor. Set up a second factor first.")
            return redirect(ACCOUNT)
        answer = super().dispatch(request, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        row = Authenticator.objects.filter(user=self.request.user, type=self.kind).first()
        return super().get_context_data(codes=row.wrap().get_unused_codes() if row else [], **kwargs)


app = fresh(_App.as_view())
passkey = fresh(_Passkey.as_view())
codes = fresh(_Codes.as_view())


@require_POST
@fresh
def remove_factor(request: PageRequest, number: int) -> HttpResponse:
    """Take a second factor away."""
    return act(
        request,
        lambda: second_factors.remove_factor(user=request.user, factor_id=number),
        "The second factor is removed.",
        ACCOUNT,
    )


@require_POST
@page
def end_session(request: PageRequest, session_id: str) -> HttpResponse:
    """End one session, or with "others" all but this one."""
    key = request.session.session_key
    if session_id == "others":
        ended = sessions.end_other_sessions(user=request.user, current_key=key)
        messages.success(request, f"Sessions ended: {ended}. Only this session is left.")
        return redirect(ACCOUNT)
    return act(
        request,
        lambda: sessions.end_session(user=request.user, session_id=session_id),
        "The session has ended.",
        ACCOUNT,
    )


@require_POST
@page
def make_token(request: PageRequest) -> HttpResponse:
    """A new token, whose secret is on the page that comes and never again."""
    form = _token_form(request, request.POST)
    if not form.is_valid():
        return _index(request, 400, token_form=form)
    try:
        _, secret = services.create_token(user=request.user, **form.service_arguments)
    except HeadgateError as error:
        form.add_error(None, error_text(error))
        return _index(request, error.status, token_form=form)
    answer = _index(request, 201, new_token=secret, new_token_name=form.service_arguments["name"])
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@page
def revoke_token(request: PageRequest, token_id: str) -> HttpResponse:
    """Ask, and revoke one of one's own tokens."""
    if not is_sure(request):
        return ask_to_revoke(request, selectors.get_token(request.user, token_id), reverse(ACCOUNT))
    return act(
        request,
        lambda: services.revoke_token(user=request.user, token_id=token_id),
        "The token is revoked.",
        ACCOUNT,
    )
