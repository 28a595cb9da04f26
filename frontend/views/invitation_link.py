"""The page that an invitation's link leads to: a login of one's own, or one's own login in another team."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from controlplane.common.errors import Conflict, HeadgateError, InvalidInput
from controlplane.teams import invitation_links
from controlplane.teams.models import LinkInvitation, User
from frontend import login_throttle
from frontend.team_forms import JoinForm

BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters()
@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Accept with the login that one has, or make one: the secret is all that a stranger shows."""
    try:
        invitation = invitation_links.open_invitation(secret)
        if isinstance(request.user, User):
            return _with_login(request, request.user, invitation, secret)
        return _without_login(request, invitation, secret)
    except HeadgateError as error:
        return render(request, "teams/join_closed.html", {"problem": error}, status=error.status)


def _with_login(request: HttpRequest, user: User, invitation: LinkInvitation, secret: str) -> HttpResponse:
    if request.method == "POST":
        try:
            team = invitation_links.accept_link(user=user, secret=secret)
        except Conflict as error:
            messages.info(request, error.detail)
            return redirect("frontend:teams")
        messages.success(request, f"You are in team {team.name} now.")
        return redirect("frontend:home")
    is_invited = invitation_links.is_for(invitation, user)
    context = {"invitation": invitation, "mine": is_invited}
    return render(request, "teams/join_logged_in.html", context, status=200 if is_invited else 403)


def _without_login(request: HttpRequest, invitation: LinkInvitation, secret: str) -> HttpResponse:
    form = JoinForm(request.POST if request.method == "POST" else None)
    wait_s = login_throttle.seconds_to_wait(request) if request.method == "POST" else 0
    if wait_s:
        form = JoinForm()
    elif form.is_valid():
        try:
            user = invitation_links.join_by_link(
                secret=secret, username=form.cleaned_data["username"], password=form.cleaned_data["password"]
            )
        except InvalidInput as error:
            login_throttle.count_failure(request)  # it may tell of a name that is taken, so nobody tries many
            _add_errors(form, error)
        else:
            login(request, user, backend=BACKEND)  # with a session of another key than the stranger's
            messages.success(request, f"Welcome. You are in team {invitation.team.name} now.")
            return redirect("frontend:home")
    context = {"form": form, "invitation": invitation, "wait_s": wait_s}
    answer = render(request, "teams/join.html", context, status=429 if wait_s else 400 if form.errors else 200)
    if wait_s:
        answer["Retry-After"] = str(wait_s)
    return answer


def _add_errors(form: JoinForm, error: InvalidInput) -> None:
    for fault in error.errors:
        form.add_error(fault.path if fault.path in form.fields else None, fault.message)
    if not error.errors:
        form.add_error("username", error.detail)
