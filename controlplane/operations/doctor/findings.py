"""What a check says, and checks that run side by side, all for a limited time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

logger = logging.getLogger(__name__)
OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"


class Finding(NamedTuple):
    """What a check finds if ``applies``, and what to do: at once when it is FAIL, to look at it when it is WARN.

    SKIPPED: it could not be checked.
    """

    applies: object
    state: str
    found: str
    advice: str = ""
    check: str = ""  # a name, if it is not that of the check which runs


Check = Callable[[], Iterable[Finding]]


def run_one(name: str, check: Check) -> list[Finding]:
    """In this thread: all that applies. Something is well if there is nothing else to say of it.

    A check that breaks is a finding, too.
    """
    findings: dict[str, list[Finding]] = {}
    try:
        for finding in check():
            named = finding._replace(check=finding.check or name)
            if finding.applies and (finding.state != OK or named.check not in findings):
                findings.setdefault(named.check, []).append(named)
    except Exception as error:
        logger.exception("the check %s has failed", name)
        found = f"the check itself failed: {type(error).__name__}"
        return [Finding(True, FAIL, found, "See the log above.", name)]
    return [finding for of_one in findings.values() for finding in of_one]


def run_side_by_side(checks: Mapping[str, Check], limit_s: float) -> list[Finding]:
    """All findings in the order of ``checks``. These use no connection of Django, since each has its own thread.

    A check that takes longer is left behind in its thread, which does not hold up the end of the process.
    """
    found, advice = f"no answer within {limit_s:g} s", "What it asks does not answer. Check the network, and try again."
    findings = {name: [Finding(True, FAIL, found, advice, name)] for name in checks}

    def run(name: str) -> None:
        findings[name] = run_one(name, checks[name])

    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in checks]
    for thread in threads:
        thread.start()
    until = monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    return [finding for name in checks for finding in findings[name]]


def without_secrets(text: str) -> str:
    """What is shown holds no secret of the settings, whatever an error's message may quote."""
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.SPARK_SECRET, settings.METRICS_TOKEN]
    secrets += [settings.DATABASES["default"].get("PASSWORD", ""), getattr(settings, "EMAIL_HOST_PASSWORD", "")]
    secrets += [urlsplit(settings.REDIS_URL).password or "", settings.OIDC.secret if settings.OIDC else ""]
    forms = {form for secret in secrets if secret for form in (secret, unquote(secret), quote(secret, safe=""))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return text
