"""Check everything that an installation needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from controlplane.operations.doctor.findings import Finding, State, without_secrets
from controlplane.operations.doctor.run import examine

_MARKS = {State.OK: "ok  ", State.WARN: "warn", State.FAIL: "FAIL", State.SKIPPED: "skip"}


class Command(BaseCommand):
    help = "Check all that Headgate needs, and say what to do. Exit code 1 if something must be done."
    requires_system_checks: list[str] = []  # they are among the checks

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        failed = sum(f.state is State.FAIL for f in findings)
        if options["json"]:
            text = json.dumps({"ok": not failed, "findings": [asdict(f) for f in findings]}, indent=2)
        else:
            warned = sum(f.state is State.WARN for f in findings)
            summary = f"{len(findings)} findings: {failed} to be mended, {warned} warnings"
            text = "\n".join([*map(_line, findings), summary])
        self.stdout.write(without_secrets(text))
        if failed:
            raise SystemExit(1)


def _line(finding: Finding) -> str:
    advice = f"\n       {finding.advice}" if finding.advice else ""
    return f"{_MARKS[finding.state]} {finding.check}: {finding.found}{advice}"
