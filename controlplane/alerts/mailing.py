"""One message by e-mail."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ValidationError

from controlplane.alerts.messages import Message, mail_text
from controlplane.alerts.posting import Outcome
from controlplane.common import mail as mails


def mail(addresses: Sequence[str], message: Message) -> Outcome:
    """To all of them at once. Its Message-ID holds the id by which a repeat can be told."""
    headers = {"Message-ID": f"<{message.id}@headgate>", "X-Headgate-Delivery": message.id}
    try:
        mails.send(to=addresses, subject=message.title, body=mail_text(message), headers=headers)
    except mails.MailFailed as failed:
        return Outcome(False, failed.detail, permanent=failed.permanent)
    except ValidationError as error:
        return Outcome(False, "; ".join(error.messages), permanent=True)
    return Outcome(True, "The mail server accepted it.")
