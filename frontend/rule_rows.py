"""Load and drop rules as rows of a form, which works without scripts: each button sends all rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from controlplane.common.errors import InvalidInput
from controlplane.common.strict_json import strict_json
from controlplane.retention.rules import MAX_RULES, Rule, read_rules, rules_json

# As people read them, in the order of Druid's console.
KINDS = (
    ("loadForever", "Keep everything"),
    ("loadByPeriod", "Keep the last …"),
    ("loadByInterval", "Keep the interval …"),
    ("dropForever", "Drop everything"),
    ("dropByPeriod", "Drop the last …"),
    ("dropBeforeByPeriod", "Drop data older than …"),
    ("dropByInterval", "Drop the interval …"),
)
_PERIODS = ("loadByPeriod", "dropByPeriod", "dropBeforeByPeriod")
_INTERVALS = ("loadByInterval", "dropByInterval")
_WITH_FUTURE = ("loadByPeriod", "dropByPeriod")
TAKES = {"with_period_or_interval": " ".join(_PERIODS + _INTERVALS), "with_future": " ".join(_WITH_FUTURE)}
_SHOWN_APART = ("type", "period", "interval", "includeFuture")
_RULE_PATH = re.compile(r"\[(\d+)\](?:\.(.+))?")


@dataclass
class Row:
    """One rule as it is filled in."""

    kind: str = "loadForever"
    span: str = ""  # a period or an interval, where the kind takes one
    future: bool = True
    rest: str = "{}"  # JSON of what the form shows no field for, kept as it is
    faults: list[str] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """Druid's form. Raises ``InvalidInput`` where ``rest`` is none of this form's."""
        rule = {**_json_object(self.rest), "type": self.kind}
        if self.kind in _PERIODS:
            rule["period"] = self.span.strip()
        if self.kind in _INTERVALS:
            rule["interval"] = self.span.strip()
        if self.kind in _WITH_FUTURE:
            rule["includeFuture"] = self.future
        return rule if self.kind.startswith("load") else {k: v for k, v in rule.items() if k in _SHOWN_APART}


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = strict_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("The form is incomplete. Open it again.")
    return {k: v for k, v in value.items() if k not in _SHOWN_APART}


def rows_of(rules: Sequence[Rule]) -> list[Row]:
    """They, to be filled in."""
    return [_row(rule) for rule in rules_json(rules)]


def _row(rule: Mapping[str, Any]) -> Row:
    rest = {key: value for key, value in rule.items() if key not in _SHOWN_APART}
    span = str(rule.get("period") or rule.get("interval") or "")
    return Row(str(rule["type"]), span, bool(rule.get("includeFuture", True)), json.dumps(rest))


def sent_rows(sent: QueryDict) -> list[Row]:
    """What a form sent. Raises ``InvalidInput`` for what is no such form."""
    count = sent.get("rows", "")
    if not re.fullmatch(r"\d{1,3}", count, re.ASCII) or int(count) > MAX_RULES:
        raise InvalidInput(f"Rules must be a list of at most {MAX_RULES}.")
    return [
        Row(
            sent.get(f"kind-{n}", ""),
            sent.get(f"of-{n}", ""),
            f"future-{n}" in sent,
            sent.get(f"rest-{n}", "{}"),
        )
        for n in range(int(count))
    ]


def apply_button(rows: list[Row], button: str) -> list[Row]:
    """With a row added, removed, or moved: ``add``, ``remove-2``, ``up-2``, ``down-2``; from 0 on."""
    what, _, number = button.partition("-")
    if what == "add":
        return [*rows, Row("loadByPeriod", "P1M")] if len(rows) < MAX_RULES else rows
    at = int(number) if re.fullmatch(r"\d{1,3}", number, re.ASCII) else len(rows)
    if at >= len(rows):
        return rows
    if what == "remove":
        return rows[:at] + rows[at + 1 :]
    to = at - 1 if what == "up" else at + 1
    if what in ("up", "down") and 0 <= to < len(rows):
        rows[at], rows[to] = rows[to], rows[at]
    return rows


def rules_in(rows: Sequence[Row]) -> list[Rule]:
    """What they say. Each row is told what is wrong with it; raises ``InvalidInput`` with the faults of none."""
    try:
        return read_rules([row.document for row in rows])
    except InvalidInput as error:
        others = []
        for fault in error.errors:
            path_match = _RULE_PATH.fullmatch(fault.path)
            if path_match is not None and int(path_match[1]) < len(rows):
                row = rows[int(path_match[1])]
                row.faults.append(_sentence(path_match[2] or "", fault.message))
            else:
                others.append(fault)
        raise InvalidInput(error.detail, others) from error


def _sentence(name: str, message: str) -> str:
    subject = {"": "The rule", "period": "The period", "interval": "The interval"}.get(name, name)
    return f"{subject} {message.removeprefix('type ')}."


def digest(rules: Sequence[Rule]) -> str:
    """What tells these from others: that those are saved which somebody has looked at."""
    return hashlib.sha256(json.dumps(rules_json(rules), sort_keys=True).encode()).hexdigest()[:32]
