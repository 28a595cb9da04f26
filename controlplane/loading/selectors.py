"""Reads of drafts: one's own in the list, a team's by its id."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.datasources.services import required_action
from controlplane.loading.documents import Document, value_at
from controlplane.loading.models import Draft
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may, require, visible


def drafts_of(user: User, team: str = "") -> QuerySet[Draft]:
    """The user's own, of teams that the user still is in, the latest first; of one team alone."""
    mine = Draft.objects.filter(visible(user, "team"), owner=user).select_related("team", "supervisor")
    return mine.filter(team__name=team) if team else mine


def names_other_team(user: User, team: Team, document: Document) -> bool:
    """Whether the datasource that it names is another team's, as far as the user may see."""
    name = value_at(document, ("spec", "dataSchema", "dataSource"))
    others = Datasource.objects.visible_to(user).exclude(team=team)
    return isinstance(name, str) and storable(name) and others.filter(name=name).exists()


def may_submit(user: User, draft: Draft, *, as_task: bool) -> bool:
    """Whether the user's role is enough to submit it: as the services will find."""
    name = value_at(draft.document, ("spec", "dataSchema", "dataSource"))
    is_name = isinstance(name, str) and storable(name)
    datasource = Datasource.objects.visible_to(user).filter(name=name).first() if is_name else None
    return may(user, required_action(datasource, Action.OPERATE if as_task else Action.ADMINISTER), draft.team)


def get_draft(user: User, draft_id: uuid.UUID) -> Draft:
    """A draft of one of the user's teams, whose operators share it. Raises ``NotFound``, ``NotAllowed``."""
    drafts = Draft.objects.filter(visible(user, "team")).select_related("team", "owner", "supervisor__datasource__team")
    draft = drafts.filter(pk=draft_id).first()
    if draft is None:
        raise NotFound(f"There is no draft {draft_id}.")
    require(user, Action.OPERATE, draft.team)
    return draft
