"""Drivers on a Spark cluster, by the ids that they got. Any host may end one, and read its log.

The host that submits a driver reads its id from what the submission writes.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.common.errors import Unavailable
from controlplane.spark import cluster_drivers, spark_conf, spark_master
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.models import ClusterDriver, Status, Task

_MARK = "Headgate submits the driver of"
_NO_MASTER = "Its driver waits: no master of the Spark cluster says that it is ALIVE."
_NO_YARN = "Its driver waits: no ResourceManager of YARN answers at HEADGATE_SPARK_MASTER_WEB."
_NO_KUBERNETES = "Its driver waits: Kubernetes' API server gives no list of pods. manage.py doctor says why."
_OUTPUT_BYTES = 65_536
_SOON = timedelta(minutes=10)  # by then a submission has ended


def begin(name: str, *, on_cluster: bool) -> None:
    """An application is launched: one that was submitted earlier is ended, and its id forgotten."""
    earlier = ClusterDriver.objects.filter(pk=name).first()
    if earlier is not None and earlier.driver_id:
        transaction.on_commit(partial(cluster_drivers.kill, earlier.driver_id))
    if on_cluster:
        fresh = {"driver_id": "", "log_address": "", "submitted_at": timezone.now()}
        ClusterDriver.objects.update_or_create(pk=name, defaults=fresh)
    elif earlier is not None:
        earlier.delete()


def wait_for_master(task: Task) -> bool:
    """Whether no master acts, as while a standby takes over: it would keep a submission without an answer. The task
    says so."""
    if spark_master.alive_master():
        return False
    message = _NO_YARN if spark_conf.on_yarn() else _NO_KUBERNETES if spark_conf.on_kubernetes() else _NO_MASTER
    Task.objects.filter(pk=task.pk, status=Status.PENDING).update(message=message)
    if task.message != message:
        notify_task_changed(task)
    return True


def first_line(name: str) -> str:
    """What stands in the log before the output of a submission."""
    return f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ} INFO {_MARK} {name}\n"


def unrecorded() -> list[str]:
    """Names of those that were submitted lately, and whose id is not known."""
    rows = ClusterDriver.objects.filter(driver_id="", submitted_at__gt=timezone.now() - _SOON)
    return list(rows.values_list("name", flat=True))


def record(name: str, log: Path) -> bool:
    """Whether the cluster has its driver, now that the submission has ended that wrote this log."""
    driver = ClusterDriver.objects.filter(pk=name).first()
    if driver is None or driver.driver_id:
        return driver is not None
    driver_id = cluster_drivers.submitted_as(_tail(log).rpartition(_MARK)[2])
    return bool(driver_id) and bool(ClusterDriver.objects.filter(pk=name, driver_id="").update(driver_id=driver_id))


def _tail(log: Path) -> str:
    try:
        return log.read_bytes()[-_OUTPUT_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""


def with_driver() -> Q:
    """Tasks whose drivers the cluster has, whatever becomes of the host that submitted them."""
    return Q(pk__in=ClusterDriver.objects.exclude(driver_id="").values("name"))


def kill(name: str) -> None:
    """End its driver, if it has one on the cluster."""
    driver = ClusterDriver.objects.filter(pk=name).exclude(driver_id="").first()
    if driver is not None:
        cluster_drivers.kill(driver.driver_id)


def read_log(name: str, offset: int, max_bytes: int) -> tuple[int, bytes] | None:
    """``log_files.read`` of a driver's log on the cluster; None where it has none there. Raises ``Unavailable``."""
    driver = ClusterDriver.objects.filter(pk=name).exclude(log_address="").first()
    if driver is None:
        return None
    try:
        return cluster_drivers.read_log(driver.log_address, offset, max_bytes)
    except OSError as error:
        raise Unavailable(f"The log of the task's driver is on the Spark cluster, and {error}") from error
