"""The tables of alerts, rules, receivers, history and silences."""

from __future__ import annotations

from frontend.tables import Column, Shape

ACTIONS = Column("deeds", "Actions", fixed=True, has_hidden_head=True)
NOT_SORTABLE = "Too many entries to sort by this column. Filter instead"
FIRING = Shape(
    "alerts",
    (
        Column("state", "State", sorts="state"),
        Column("about", "About", sorts="subject", fixed=True),
        Column("rule", "Rule", sorts="rule__name"),
        Column("why", "Why"),
        Column("since", "Since", sorts="since", descending_first=True),
        ACTIONS,
    ),
    default="state",
    tie_breakers=("-since", "-id"),
)
RULES = Shape(
    "alert-rules",
    (
        Column("name", "Rule", sorts="name", fixed=True),
        Column("kind", "Kind", sorts="kind"),
        Column("about", "About", sorts="datasource__name"),
        Column("team", "Team", sorts="team_name"),
        Column("tells", "Notifies"),
        Column("firing", "Firing", sorts="firing", number=True, descending_first=True),
        Column("changed", "Changed", sorts="changed_at", descending_first=True, is_shown=False),
    ),
    default="team",
    tie_breakers=("team_name", "name"),
)
RECEIVERS = Shape(
    "alert-receivers",
    (
        Column("name", "Receiver", sorts="name", fixed=True),
        Column("where", "Destination", sorts="kind"),
        Column("team", "Team", sorts="team_name"),
        Column("health", "Delivery status", sorts="failures", descending_first=True),
        Column("waiting", "Waiting", sorts="waiting", number=True, descending_first=True),
        ACTIONS,
    ),
    default="team",
    tie_breakers=("team_name", "name"),
)
HISTORY = Shape(
    "alert-history",
    (
        Column("when", "When", sorts="id", descending_first=True, fixed=True),
        Column("what", "What", unsortable_reason=NOT_SORTABLE),
        Column("about", "About", unsortable_reason=NOT_SORTABLE),
        Column("rule", "Rule", unsortable_reason=NOT_SORTABLE),
        Column("why", "Why"),
        Column("messages", "Messages"),
    ),
    default="-when",
    tie_breakers=("-id",),
)
SILENCES = Shape(
    "alert-silences",
    (
        Column("of", "Scope", sorts="rule__name", fixed=True),
        Column("team", "Team", sorts="team__name"),
        Column("why", "Why"),
        Column("by", "By", sorts="created_by"),
        Column("begin", "From", sorts="begins_at", descending_first=True, is_shown=False),
        Column("until", "Until", sorts="ends_at", descending_first=True),
        ACTIONS,
    ),
    default="-begin",
    tie_breakers=("-id",),
)
