"""What receivers get: JSON for a webhook, a text for Slack, a mail. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django.conf import settings

from controlplane.alerts.models import Event
from controlplane.common.health import one_text

SIGNATURE = "X-Headgate-Signature"
_TITLES = {"fired": "Firing", "ended": "Ended", "complete": "Complete", "test": "Test"}


@dataclass(frozen=True)
class Message:
    """One message to one receiver."""

    id: str  # by which a repeat can be told
    at: datetime
    event: str  # a transition, or ``test``
    team: str
    rule: dict[str, Any]
    about: str
    subject: str
    datasource: str
    episode: int
    since: datetime
    value: float | None
    cause: str
    action: str = ""  # what to do next
    interval: tuple[datetime, datetime] | None = None

    @property
    def title(self) -> str:
        about = f": {self.subject}" if self.subject else ""
        return f"{_TITLES[self.event]}: {self.rule['name']}{about}"

    @property
    def link(self) -> str:
        """To the page of what it is about; only a path where the site does not know its own address."""
        path = f"/{self.about}s/{quote(self.subject, safe='')}/" if self.subject else "/alerts/"
        return f"{getattr(settings, 'PUBLIC_URL', '')}{path}"


def message_of(event: Event, delivery_id: str) -> Message:
    """Of an event with its team."""
    ends = (event.interval_start, event.interval_end)
    return Message(
        id=delivery_id,
        at=event.at,
        event=event.transition,
        team=event.team.name,
        rule={"id": event.rule_id, "name": event.rule_name, "kind": event.kind},
        about=event.about,
        subject=event.subject,
        datasource=event.datasource,
        episode=event.episode,
        since=event.since,
        value=event.value,
        cause=event.cause,
        action=event.action,
        interval=ends if ends[0] and ends[1] else None,  # type: ignore[arg-type]  # both are there
    )


def webhook_body(message: Message) -> bytes:
    """JSON; see docs/reference/alerts.md."""
    body: dict[str, Any] = {
        "id": message.id,
        "event": message.event,
        "at": _time(message.at),
        "team": message.team,
        "rule": message.rule,
        "subject": {"kind": message.about, "name": message.subject},
        "datasource": message.datasource,
        "episode": message.episode,
        "since": _time(message.since),
        "value": message.value,
        "text": one_text(message.cause, message.action),
        "cause": message.cause,
        "action": message.action,
        "link": message.link,
    }
    if message.interval is not None:
        body["interval"] = {"start": _time(message.interval[0]), "end": _time(message.interval[1])}
    return json.dumps(body).encode()


def slack_body(message: Message) -> bytes:
    """What Slack, and who speaks like it, takes at an incoming webhook."""
    link = f"\n<{message.link}>" if message.link.startswith("http") else ""
    text = f"*{_escaped(message.title)}*\n{_escaped(_lines(message))}{link}\n_{message.id}_"
    return json.dumps({"text": text}).encode()


def mail_text(message: Message) -> str:
    """The body of a mail."""
    lines = [_lines(message), "", f"Team: {message.team}", f"Rule: {message.rule['name']}"]
    lines += [f"Since: {message.since:%Y-%m-%d %H:%M:%S} UTC", message.link, "", f"Message {message.id}"]
    return "\n".join(lines)


def signature(secret: str, body: bytes, at_s: int) -> str:
    """The value of the header: when it was signed, and HMAC-SHA256 over that time, a stop, and the body."""
    signed = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={signed}"


def _lines(message: Message) -> str:
    return f"{message.cause}\nWhat to do: {message.action}" if message.action else message.cause


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
