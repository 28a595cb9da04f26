"""A team's service accounts with their tokens, and the tokens of its members. For its admins."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.teams import selectors, services
from controlplane.teams import service_accounts as accounts
from controlplane.teams.models import Team
from controlplane.teams.permissions import Action, require
from frontend.actions import PageAction
from frontend.paging import numbered_page
from frontend.team_forms import AccountForm, TokenForm
from frontend.token_tables import ACCOUNTS, MEMBERS_TOKENS, TOKENS_OF_ONE
from frontend.views.common import PageRequest, act, error_text, is_sure, page, rest_address
from frontend.views.team_tabs import team_page
from frontend.views.token_revocation import ask_to_revoke

LIST, ACCOUNT, TOKENS = "frontend:team-accounts", "frontend:team-account", "frontend:team-tokens"


def _team(request: PageRequest, name: str) -> Team:
    team = selectors.get_team(request.user, name)
    require(request.user, Action.ADMINISTER, team)
    return team


@page
def index(request: PageRequest, name: str) -> HttpResponse:
    """The accounts; and a form that makes one."""
    team = _team(request, name)
    form = AccountForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            accounts.create_account(user=request.user, team=team, name=form.cleaned_data["name"])
        except (InvalidInput, Conflict) as error:
            form.add_error("name", error_text(error))
        else:
            return redirect(ACCOUNT, name, form.cleaned_data["name"])
    table = ACCOUNTS.table_for(request.GET)
    rows = numbered_page(accounts.list_accounts(request.user, team).order_by(*table.ordering), request.GET.get("page"))
    context = {
        "page": rows,
        "accounts": [(accounts.short_name(account), account) for account in rows],
        "table": table,
        "form": form,
        "rest": rest_address("api:service-accounts", name),
    }
    status = 400 if form.errors else 200
    return team_page(request, team, "service-accounts", "teams/accounts.html", context, status=status)


@page
def detail(request: PageRequest, name: str, account: str) -> HttpResponse:
    """One account's tokens; and a form that makes one, whose secret is shown this once."""
    team = _team(request, name)
    accounts.get_account(request.user, team, account)
    names = list(Datasource.objects.visible_to(request.user).filter(team=team).values_list("name", flat=True))
    form = TokenForm(request.POST if request.method == "POST" else None, datasources=names)
    more: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        try:
            _, more["secret"] = accounts.create_account_token(
                user=request.user, team=team, account=account, **form.service_arguments
            )
            form = TokenForm(datasources=names)
        except (InvalidInput, Conflict) as error:
            form.add_error(None, error_text(error))
    table = TOKENS_OF_ONE.table_for(request.GET)
    tokens = accounts.list_account_tokens(request.user, team, account).order_by(*table.ordering)
    context = {
        "account": account,
        "page": numbered_page(tokens, request.GET.get("page")),
        "table": table,
        "form": form,
        "rest": rest_address("api:service-account-tokens", name, account),
        **more,
    }
    status = 400 if form.errors else 200
    return team_page(request, team, "service-accounts", "teams/account.html", context, status=status)


@page
def delete(request: PageRequest, name: str, account: str) -> HttpResponse:
    """Ask, and delete an account."""
    team = _team(request, name)
    accounts.get_account(request.user, team, account)
    if request.method == "POST":
        return act(
            request,
            lambda: accounts.delete_account(user=request.user, team=team, name=account),
            f"The service account {account} is deleted.",
            reverse(LIST, args=[name]),
        )
    text = "Its tokens stop working now. What it submitted keeps running: it belongs to the team."
    question = f"Delete the service account {account}?"
    action = PageAction("delete", "Delete", question, text, request.path, request.path, "danger")
    return render(request, "confirm.html", {"action": action, "back": reverse(ACCOUNT, args=[name, account])})


@require_POST
@page
def revoke(request: PageRequest, name: str, account: str, token_id: str) -> HttpResponse:
    """Ask, and revoke a token of an account."""
    team, back = _team(request, name), reverse(ACCOUNT, args=[name, account])
    if not is_sure(request):
        return ask_to_revoke(request, accounts.get_account_token(request.user, team, account, token_id), back)
    return act(
        request,
        lambda: accounts.revoke_account_token(user=request.user, team=team, account=account, token_id=token_id),
        "The token is revoked.",
        back,
    )


@page
def member_tokens(request: PageRequest, name: str) -> HttpResponse:
    """The tokens of the team's members."""
    team = _team(request, name)
    table = MEMBERS_TOKENS.table_for(request.GET)
    tokens = selectors.list_member_tokens(request.user, team).order_by(*table.ordering)
    context = {
        "page": numbered_page(tokens, request.GET.get("page")),
        "table": table,
        "rest": rest_address("api:member-tokens", name),
    }
    return team_page(request, team, "tokens", "teams/tokens.html", context)


@require_POST
@page
def revoke_member_token(request: PageRequest, name: str, username: str, token_id: str) -> HttpResponse:
    """Ask, and revoke a member's token."""
    team, back = _team(request, name), reverse(TOKENS, args=[name])
    if not is_sure(request):
        return ask_to_revoke(request, selectors.get_member_token(request.user, team, username, token_id), back)
    return act(
        request,
        lambda: services.revoke_member_token(user=request.user, team=team, username=username, token_id=token_id),
        f"A token of {username} is revoked.",
        back,
    )
