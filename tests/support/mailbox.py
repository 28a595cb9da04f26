"""A real SMTP server on loopback, which keeps what it is sent."""

from __future__ import annotations

import email
import email.policy
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller


class Mailbox:
    """``messages``: what came, in order. ``refuses``: what it answers instead of taking one; empty for taking it."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refuses = ""

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuses:
            return self.refuses
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 OK"

    def newest(self) -> str:
        """The text of the newest one."""
        return str(self.messages[-1].get_content())


@contextmanager
def mail_server(settings: Any) -> Iterator[Mailbox]:
    """Have this process send its mail to a server of its own. ``settings``: those of Django, which are set back."""
    mailbox = Mailbox()
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    wanted = {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": "127.0.0.1",
        "EMAIL_PORT": port,
    }
    before = {name: getattr(settings, name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(settings, name, value)
        yield mailbox
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
        controller.stop()
