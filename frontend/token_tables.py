"""The tables of sessions, of tokens, and of the accounts that programs have them from."""

from __future__ import annotations

from frontend.tables import Column, Shape

_LAST_USED = Column("used", "Last used", sorts="last_used_at", descending_first=True)
_ENDS = Column("ends", "Expires", sorts="expiry")
_CREATED = Column("made", "Created", sorts="created", descending_first=True)
_REVOKE = Column("revoke", "Revoke", fixed=True, has_hidden_head=True)
_LIFE = (_LAST_USED, _ENDS, _CREATED, _REVOKE)
_LAST = ("-created", "digest")
_SCOPE = Column("scope", "Scope", sorts="scope")
MEMBERS_TOKENS = Shape(
    "member-tokens",
    (
        Column("member", "Member", sorts="username", fixed=True),
        Column("token", "Token", unsortable_reason="A token for other teams too keeps its name private"),
        _SCOPE,
        *_LIFE,
    ),
    default="-made",
    tie_breakers=_LAST,
)
TOKENS_OF_ONE = Shape(
    "tokens",
    (
        Column("token", "Token", sorts="name", fixed=True),
        _SCOPE,
        Column("datasources", "Datasources"),
        *_LIFE,
    ),
    default="-made",
    tie_breakers=_LAST,
)
SESSIONS = Shape(
    "sessions",
    (
        Column("where", "Address", sorts="address", fixed=True),
        Column("browser", "Browser", sorts="browser"),
        Column("since", "Since", sorts="created_at", descending_first=True),
        Column("seen", "Last seen", sorts="seen_at", descending_first=True),
        Column("end", "End", fixed=True, has_hidden_head=True),
    ),
    default="-seen",
    tie_breakers=("-seen_at", "id"),
    key="sessions_sort",
)
ACCOUNTS = Shape(
    "service-accounts",
    (
        Column("name", "Name", sorts="username", fixed=True),
        Column("audit", "Name in audit trail"),
        Column("tokens", "Tokens", sorts="token_count", number=True, descending_first=True),
        _LAST_USED,
        Column("made", "Created", sorts="date_joined", descending_first=True),
    ),
    default="name",
    tie_breakers=("username",),
)
