"""The question before a token is revoked: what shows it fails from then on."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.teams.models import ApiToken
from frontend.actions import PageAction
from frontend.team_forms import SureForm
from frontend.views.common import PageRequest


def ask_to_revoke(request: PageRequest, token: ApiToken, back: str) -> HttpResponse:
    """``back``: where the token is listed."""
    used = (
        f"It was last used at {token.last_used_at:%Y-%m-%d %H:%M} UTC." if token.last_used_at else "It was never used."
    )
    text = f"Programs that use this token can no longer log in. {used} You can't restore it."
    question = f"Revoke the token {token.display_name}?"
    action = PageAction("revoke", "Revoke token", question, text, request.path, request.path, "danger", SureForm())
    return render(request, "confirm.html", {"action": action, "back": back})
