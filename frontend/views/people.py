"""The site's people, for its administrators; and the page where somebody chooses a password."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from controlplane.common import mail
from controlplane.common.errors import Conflict, HeadgateError, InvalidInput
from controlplane.login import second_factors as factors
from controlplane.teams import people
from controlplane.teams.models import User
from frontend.actions import PageAction
from frontend.paging import keyset_page
from frontend.tables import Column, Shape
from frontend.team_forms import PasswordForm, PeopleFilter, PersonForm
from frontend.views.common import PageRequest, act, error_text, page, rest_address

PERSON = "frontend:person"
TABLE = Shape(
    "people",
    (
        Column("name", "Name", sorts="username", fixed=True),
        Column("email", "E-mail address", sorts="email"),
        Column("teams", "Teams"),
        Column("state", "State"),
        Column("login", "Last login", sorts="last_seen", descending_first=True),
        Column("joined", "Created", sorts="date_joined", descending_first=True, is_shown=False),
    ),
    default="name",
    tie_breakers=("username",),
)
ACTIVE = {"yes": True, "no": False}


@page
def index(request: PageRequest) -> HttpResponse:
    """Everybody by name."""
    filters, table = PeopleFilter(request.GET), TABLE.table_for(request.GET)
    cleaned = filters.cleaned_data if filters.is_valid() else {}
    filter_values = {"search": cleaned.get("search", ""), "team": cleaned.get("team", "")}
    queryset = people.list_people(request.user, **filter_values, active=ACTIVE.get(cleaned.get("active", "")))
    queryset = queryset.prefetch_related("memberships__team")
    context = {
        "filters": filters,
        "filtered": any(cleaned.values()),
        "clear": reverse("frontend:people"),
        "table": table,
        "page": keyset_page(queryset, table.order, request.GET.get("cursor")),
        "rest": rest_address("api:people", **filter_values),
    }
    return render(request, "people/list.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """Make somebody."""
    people.list_people(request.user)  # refuses whom it is not for
    form = PersonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            created = people.create_person(user=request.user, **form.cleaned_data)
        except (InvalidInput, Conflict) as error:
            form.add_error(None, error_text(error))
        else:
            messages.success(request, f"The user {created.username} was created. Next, create a password link.")
            return redirect(PERSON, created.username)
    return render(request, "people/new.html", {"form": form}, status=400 if form.errors else 200)


@page
def detail(request: PageRequest, username: str) -> HttpResponse:
    """One person: teams, and what may be done."""
    return _detail(request, people.get_person(request.user, username))


def _detail(request: PageRequest, person: User, **more: Any) -> HttpResponse:
    context = {
        "person": person,
        "memberships": person.memberships.select_related("team").order_by("team__name"),
        "actions": [] if person == request.user else _actions(person),
        "factors": factors.list_factors(person),
        "rest": rest_address("api:person", person.username),
        "crumbs": [("People", reverse("frontend:people"))],
        "mails": mail.is_configured() and bool(person.email),
    }
    return render(request, "people/detail.html", {**context, **more})


def _actions(person: User) -> list[PageAction]:
    return [*([_remove_factors_action(person)] if factors.list_factors(person) else []), _switch_action(person)]


def _remove_factors_action(person: User) -> PageAction:
    url = reverse("frontend:person-second-factors", args=[person.username])
    text = "This also ends their sessions and tokens. First make sure that the request comes from them."
    question = f"Remove the second factors of {person.username}?"
    return PageAction("factors", "Remove second factors", question, text, url, url, "danger")


def _switch_action(person: User) -> PageAction:
    url = reverse("frontend:person-switch", args=[person.username])
    if person.is_active:
        text = "Their sessions and tokens end now, permanently. What they created keeps running."
        return PageAction("deactivate", "Deactivate", f"Deactivate {person.username}?", text, url, url, "danger")
    text = "They can log in again, with their roles. Their old tokens stay revoked."
    return PageAction("activate", "Activate", f"Activate {person.username}?", text, url, url)


@page
def switch(request: PageRequest, username: str) -> HttpResponse:
    """Ask, and turn somebody off or on."""
    person = people.get_person(request.user, username)
    back, action = reverse(PERSON, args=[username]), _switch_action(person)
    if request.method != "POST":
        return render(request, "confirm.html", {"action": action, "back": back})
    active = not person.is_active
    done = f"{username} is {'active again' if active else 'deactivated'}."
    return act(request, lambda: people.set_active(user=request.user, username=username, active=active), done, back)


@page
def second_factors(request: PageRequest, username: str) -> HttpResponse:
    """Ask, and help somebody who has lost theirs."""
    person = people.get_person(request.user, username)
    back = reverse(PERSON, args=[username])
    if request.method != "POST":
        return render(request, "confirm.html", {"action": _remove_factors_action(person), "back": back})
    done = f"The second factors of {username} were removed, and all sessions have ended."
    return act(request, lambda: factors.remove_all_factors(user=request.user, username=username), done, back)


@require_POST
@page
def password_link(request: PageRequest, username: str) -> HttpResponse:
    """Make a link with which they choose a password; it is shown this once where no mail goes out."""
    link, problem = people.send_password_link(
        user=request.user,
        username=username,
        address=lambda secret: mail.link(reverse("frontend:choose-password", args=[secret]), request),
    )
    return _detail(request, people.get_person(request.user, username), link=link, problem=problem, sent=True)


@sensitive_post_parameters()
@never_cache
def choose_password(request: HttpRequest, secret: str) -> HttpResponse:
    """For whoever has a link: choose the password, and log in with it."""
    form = PasswordForm(request.POST if request.method == "POST" else None)
    try:
        link = people.open_password_link(secret)
        if form.is_valid():
            people.choose_password(secret=secret, password=form.cleaned_data["password"])
            messages.success(request, "The password is set. Log in with it.")
            return redirect("frontend:login")
    except InvalidInput as error:
        form.add_error("password", error_text(error))
    except HeadgateError as error:
        return render(request, "teams/join_closed.html", {"problem": error}, status=error.status)
    context = {"form": form, "username": link.user.username}
    return render(request, "people/password.html", context, status=400 if form.errors else 200)
