"""What a check says, and checks that run side by side, each for a limited time."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

logger = logging.getLogger(__name__)
AT_ONCE = 8


class State(StrEnum):
    """FAIL: something must be done. WARN: look at it. SKIPPED: it could not be checked, for a reason that is said."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """What a check found, and what to do. ``advice`` is empty when all is well."""

    check: str
    state: State
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Check:
    """A check by its name. ``run`` uses no connection of Django: it runs in a thread of its own."""

    name: str
    run: Callable[[], Iterable[Finding]]


def ok(check: str, found: str) -> Finding:
    return Finding(check, State.OK, found)


def warn(check: str, found: str, advice: str) -> Finding:
    return Finding(check, State.WARN, found, advice)


def fail(check: str, found: str, advice: str) -> Finding:
    return Finding(check, State.FAIL, found, advice)


def skipped(check: str, why: str) -> Finding:
    return Finding(check, State.SKIPPED, why)


def run_side_by_side(checks: Sequence[Check], limit_s: float) -> list[Finding]:
    """All findings in the order of ``checks``, which begin at most ``AT_ONCE`` at a time; each has ``limit_s``.

    A check that takes longer is left behind in its thread, which does not hold up the end of the process.
    """
    findings: list[Finding] = []
    for first in range(0, len(checks), AT_ONCE):
        begun = [(check, _begin(check)) for check in checks[first : first + AT_ONCE]]
        until = monotonic() + limit_s
        for check, answers in begun:
            try:
                findings += answers.get(timeout=max(0.0, until - monotonic()))
            except queue.Empty:
                advice = "Something that it asks does not answer. Check the network, and run it again."
                findings.append(fail(check.name, f"no answer within {limit_s:g} s", advice))
    return findings


def run_one(check: Check) -> list[Finding]:
    """In this thread. A check that breaks is a finding, too."""
    try:
        return list(check.run())
    except Exception as error:
        logger.exception("the check %s has failed", check.name)
        return [fail(check.name, f"the check itself failed: {type(error).__name__}", "See the log above.")]


def _begin(check: Check) -> queue.Queue[list[Finding]]:
    answers: queue.Queue[list[Finding]] = queue.Queue()
    threading.Thread(target=lambda: answers.put(run_one(check)), name=check.name, daemon=True).start()
    return answers


def without_secrets(text: str) -> str:
    """What is shown holds no secret of the settings, whatever an error's message may quote."""
    for secret in _secrets():
        text = text.replace(secret, "***")
    return text


def _secrets() -> list[str]:
    found = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.SPARK_SECRET, settings.METRICS_TOKEN]
    found += [settings.DATABASES["default"].get("PASSWORD", ""), getattr(settings, "EMAIL_HOST_PASSWORD", "")]
    found += [urlsplit(settings.REDIS_URL).password or "", settings.OIDC.secret if settings.OIDC else ""]
    forms = {form for secret in found if secret for form in (secret, unquote(secret), quote(secret, safe=""))}
    return sorted(forms, key=len, reverse=True)
