"""Check everything that an installation needs."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from controlplane.operations.doctor.findings import FAIL, OK, SKIPPED, WARN, Finding, without_secrets
from controlplane.operations.doctor.run import examine

_MARKS = {OK: "ok  ", WARN: "warn", FAIL: "FAIL", SKIPPED: "skip"}
_SHOWN = ("check", "state", "found", "advice")


class Command(BaseCommand):
    help = "Check all that Headgate needs, and say what to do. Exit code 1 if something must be done."
    requires_system_checks: list[str] = []  # they are among the checks

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        failed = sum(f.state == FAIL for f in findings)
        if options["json"]:
            shown = [{name: getattr(f, name) for name in _SHOWN} for f in findings]
            text = json.dumps({"ok": not failed, "findings": shown}, indent=2)
        else:
            warned = sum(f.state == WARN for f in findings)
            summary = f"{len(findings)} findings: {failed} to be mended, {warned} warnings"
            text = "\n".join([*map(_line, findings), summary])
        self.stdout.write(without_secrets(text))
        if failed:
            raise SystemExit(1)


def _line(finding: Finding) -> str:
    advice = f"\n       {finding.advice}" if finding.advice else ""
    return f"{_MARKS[finding.state]} {finding.check}: {finding.found}{advice}"
