"""What the command palette offers for a text: pages, things by name, and what may be done to them."""

from __future__ import annotations

from controlplane.common.text import storable
from controlplane.teams.models import User
from frontend.palette.actions import actions
from frontend.palette.hit import Hit
from frontend.palette.named_objects import things
from frontend.palette.pages import pages_for
from frontend.team_scope import Reach

MAX_HITS = 24
LONGEST_TEXT = 300


def hits_of(user: User, reach: Reach, text: str) -> list[Hit]:
    """At most ``MAX_HITS``: actions first, then pages, then things; of each what begins with the text first."""
    query = " ".join(text[:LONGEST_TEXT].split()).rpartition("· ")[2]
    pages = [hit for hit in pages_for(reach) if query.lower() in hit.name.lower()]
    if not query or not storable(query):
        return pages[:MAX_HITS]
    return [*actions(user, reach, query), *pages, *things(user, reach, query)][:MAX_HITS]
