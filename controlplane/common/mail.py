"""Mail to people. Whoever sends one asks here; where no server is set, nobody may promise a mail."""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.http import HttpRequest

from controlplane.common.errors import Unavailable

log = logging.getLogger(__name__)


class MailFailed(Unavailable):
    """The mail server did not take it. The text says why and holds no secret."""

    permanent = False  # whether it said no for good


def is_configured() -> bool:
    """Whether ``HEADGATE_EMAIL_URL`` is set."""
    return bool(settings.EMAIL_HOST)


def send(*, to: Sequence[str], subject: str, body: str, headers: Mapping[str, str] | None = None) -> None:
    """Hand one mail over to the server: plain text, each of ``to`` sees the others.

    It takes as long as the server does, 10 seconds at most for each answer: call it outside of a transaction, in a
    job where that is possible. Raises ``MailFailed``, ``ValidationError`` (what is no address).
    """
    if not is_configured():
        raise MailFailed("No mail server is configured: set HEADGATE_EMAIL_URL.")
    for address in to:
        validate_email(address)
    message = EmailMessage(
        " ".join(subject.split())[:200],  # a header is one line, whatever a name in it holds
        body,
        settings.DEFAULT_FROM_EMAIL,
        list(to),
        headers={"Auto-Submitted": "auto-generated", **(headers or {})},
    )
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        log.warning("mail could not be sent: %s", error)
        failed = MailFailed(f"The mail server {settings.EMAIL_HOST} did not accept the mail: {reason_of(error)}")
        failed.permanent = _is_permanent(error)
        raise failed from None


def link(path: str, request: HttpRequest | None = None) -> str:
    """The address of one of our pages for a mail: of ``HEADGATE_PUBLIC_URL``, else as the request came."""
    if settings.PUBLIC_URL or request is None:
        return f"{settings.PUBLIC_URL}{path}"
    return request.build_absolute_uri(path)


def _is_permanent(error: Exception) -> bool:
    """Of SMTP's answers those from 500 on are a no; one of a login is the site's to mend."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    is_login_error = isinstance(error, smtplib.SMTPAuthenticationError)
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500 and not is_login_error


def reason_of(error: Exception) -> str:
    """What the server or the system said, in one line."""
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return " ".join(f"{error.smtp_code} {text}".split())[:300]
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "it refused the recipient"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:300] or type(error).__name__
