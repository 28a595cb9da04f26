"""The tables of alerts, rules, receivers, history and silences."""

from __future__ import annotations

from frontend.tables import Column, Shape

ACTIONS = Column("deeds", "Actions", fixed=True, silent=True)
NOT_SORTABLE = "Too many entries to sort by this column. Filter instead"
FIRING = Shape(
    "alerts",
    (
        Column("state", "State", sorts="state"),
        Column("about", "About", sorts="subject", fixed=True),
        Column("rule", "Rule", sorts="rule__name"),
        Column("why", "Why"),
        Column("since", "Since", sorts="since", falls=True),
        ACTIONS,
    ),
    default="state",
    last=("-since", "-id"),
)
RULES = Shape(
    "alert-rules",
    (
        Column("name", "Rule", sorts="name", fixed=True),
        Column("kind", "Kind", sorts="kind"),
        Column("about", "About", sorts="datasource__name"),
        Column("team", "Team", sorts="team_name"),
        Column("tells", "Notifies"),
        Column("firing", "Firing", sorts="firing", number=True, falls=True),
        Column("changed", "Changed", sorts="changed_at", falls=True, shown=False),
    ),
    default="team",
    last=("team_name", "name"),
)
RECEIVERS = Shape(
    "alert-receivers",
    (
        Column("name", "Receiver", sorts="name", fixed=True),
        Column("where", "Destination", sorts="kind"),
        Column("team", "Team", sorts="team_name"),
        Column("health", "Delivery status", sorts="failures", falls=True),
        Column("waiting", "Waiting", sorts="waiting", number=True, falls=True),
        ACTIONS,
    ),
    default="team",
    last=("team_name", "name"),
)
HISTORY = Shape(
    "alert-history",
    (
        Column("when", "When", sorts="id", falls=True, fixed=True),
        Column("what", "What", why=NOT_SORTABLE),
        Column("about", "About", why=NOT_SORTABLE),
        Column("rule", "Rule", why=NOT_SORTABLE),
        Column("why", "Why"),
        Column("messages", "Messages"),
    ),
    default="-when",
    last=("-id",),
)
SILENCES = Shape(
    "alert-silences",
    (
        Column("of", "Scope", sorts="rule__name", fixed=True),
        Column("team", "Team", sorts="team__name"),
        Column("why", "Why"),
        Column("by", "By", sorts="created_by"),
        Column("begin", "From", sorts="begins_at", falls=True, shown=False),
        Column("until", "Until", sorts="ends_at", falls=True),
        ACTIONS,
    ),
    default="-begin",
    last=("-id",),
)
