"""All checks of an installation."""

from __future__ import annotations

from django.db import DatabaseError

from controlplane.operations.doctor import configuration, metadata_store, outside, processes
from controlplane.operations.doctor.findings import Check, Finding, State, run_one, run_side_by_side, skipped

LIMIT_S = 20.0  # of each check


def examine() -> list[Finding]:
    """Every finding, settings first. What needs the metadata store is skipped where that does not answer."""
    findings = run_one(Check(configuration.NAME, configuration.check_settings))
    store = run_one(Check(metadata_store.NAME, metadata_store.check_metadata_store))
    findings += store
    side_by_side = [
        Check(processes.VALKEY, processes.check_valkey),
        Check(processes.WEB, processes.check_web),
        Check(processes.WORKERS, processes.check_jobs),
        Check(processes.MAIL, processes.check_mail),
        Check(processes.TASKS, processes.check_task_folder),
        Check(outside.DEEP_STORAGE, outside.check_deep_storage),
        Check(outside.JAVA, outside.check_java),
        Check(outside.SPARK, outside.check_spark),
        Check(outside.PYTHON, outside.check_python),
    ]
    if store[0].state is State.FAIL and store[0].check == metadata_store.NAME and len(store) == 1:
        findings += [skipped(name, "PostgreSQL does not answer") for name in (processes.HOSTS, "Kafka")]
    else:
        findings += _from_store(side_by_side)
    return findings + run_side_by_side(side_by_side, LIMIT_S)


def _from_store(side_by_side: list[Check]) -> list[Finding]:
    """What the store says at once; what it knows of others is added to ``side_by_side``."""
    try:
        faults, kafka = outside.kafka_checks()
        hosts = list(processes.check_hosts())
    except DatabaseError:
        return [skipped(name, "the tables can't be read") for name in (processes.HOSTS, "Kafka")]
    side_by_side += kafka
    return hosts + faults
