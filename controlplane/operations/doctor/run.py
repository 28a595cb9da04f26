"""All checks of an installation."""

from __future__ import annotations

from django.db import DatabaseError

from controlplane.operations.doctor import outside, processes
from controlplane.operations.doctor.configuration import check_settings
from controlplane.operations.doctor.findings import FAIL, SKIPPED, Check, Finding, run_one, run_side_by_side
from controlplane.operations.doctor.metadata_store import NAME, check_metadata_store

LIMIT_S = 20.0
CHECKS: dict[str, Check] = {
    "Valkey": processes.check_valkey,
    "web": processes.check_web,
    "workers": processes.check_jobs,
    "mail": processes.check_mail,
    "task folder": processes.check_task_folder,
    "deep storage": outside.check_deep_storage,
    "Java": outside.check_java,
    "Spark": outside.check_spark,
    "Python of executors": outside.check_python,
}


def examine() -> list[Finding]:
    """Every finding, settings first. What needs the metadata store is skipped where that does not answer."""
    findings, checks = run_one("settings", check_settings), CHECKS
    findings += (store := run_one(NAME, check_metadata_store))
    why = "PostgreSQL does not answer" if [f.state for f in store] == [FAIL] else ""
    try:
        if not why:
            hosts, checks = [*processes.check_hosts()], {**CHECKS, **outside.kafka_checks()}
            findings += run_one("hosts", lambda: hosts)
    except DatabaseError:
        why = "the tables can't be read"
    findings += [Finding(True, SKIPPED, why, check=name) for name in ("hosts", "Kafka") if why]
    return findings + run_side_by_side(checks, LIMIT_S)
