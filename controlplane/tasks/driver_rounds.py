"""What a Spark cluster's master, YARN or Kubernetes says of drivers, against what should run. A part of the watch.

1. A driver that has ended without a last word has failed, at once; one that never came says why.
2. A driver whose task has ended is killed after ``KILL_GRACE``: its token is of no use any more.
3. One that waits for a free core of the cluster has not failed: its time to start has not begun.
4. A pod that Kubernetes cannot start, or no longer has, is a failure at once. One that ended is deleted later.

None of them starts a driver again by itself: it knows less than heartbeats do, and would have two for one task.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from controlplane.spark import cluster_drivers, spark_conf, spark_master
from controlplane.spark.cluster_state import Driver
from controlplane.tasks import drivers, lifecycle
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.models import ClusterDriver, Resident, Status, Task

KILL_GRACE = timedelta(seconds=10)  # so long one may take to end after its last word
QUIET = timedelta(seconds=3)  # a driver that ended has said so by then
KEPT = timedelta(days=30)  # so long its log can be asked for
POD_KEPT = timedelta(hours=1)  # so long the pod of a driver that ended, and its log
_GONE = Driver("FAILED", reason="its pod is gone: somebody deleted it, or its node was lost")
_REASON_BYTES = 8192
_WAITS = "Its driver waits for a core and memory on a machine of the Spark cluster."


def watch() -> None:
    """Compare the master's drivers with the tasks that have not ended. A master that is silent says nothing."""
    if not spark_conf.drivers_on_cluster():
        return
    cluster = spark_master.cluster()
    if cluster is None:
        return
    rows = {d.driver_id: d for d in ClusterDriver.objects.filter(driver_id__in=list(cluster.drivers))}
    for driver_id, row in rows.items():
        driver = cluster.drivers[driver_id]
        if driver.worker_web and not row.log_address:
            row.log_address = cluster_drivers.log_address(driver_id)
            row.save(update_fields=["log_address"])
    names = {row.name: cluster.drivers[driver_id] for driver_id, row in rows.items()}
    for name in _gone(names):
        names[name] = _GONE
        drivers.kill(name)  # for what belonged to it
    for task in Task.objects.active().filter(pk__in=names):
        _judge(task, names[task.pk])
    for name in _unowned(names):
        drivers.kill(name)
    _forget_old()


def _gone(names: Mapping[str, Driver]) -> list[str]:
    """Of tasks that have not ended, those whose drivers do not exist any more."""
    unseen = ClusterDriver.objects.filter(name__in=Task.objects.active().values("pk")).exclude(name__in=names)
    return [row.name for row in unseen.exclude(driver_id="") if cluster_drivers.is_gone(row.driver_id)]


def _judge(task: Task, driver: Driver) -> None:
    now = timezone.now()
    if task.status == Status.PENDING and driver.cannot_start:
        lifecycle.end_task(task, error=f"Kubernetes cannot start the driver's pod. {driver.reason}")
    elif task.status == Status.PENDING and driver.state == "SUBMITTED":
        message = f"{_WAITS} {driver.reason}".rstrip()[:2000]
        Task.objects.filter(pk=task.pk, status=Status.PENDING).update(launched_at=now, message=message)
        if task.message != message:
            notify_task_changed(task)
    elif driver.has_ended and (task.last_heartbeat_at or task.launched_at or now) < now - QUIET:
        lifecycle.end_task(task, error=_end_message(task, driver))


def _end_message(task: Task, driver: Driver) -> str:
    state = f"{driver.state} on the Spark cluster" + (f": {driver.reason}" if driver.reason else "")
    if task.last_heartbeat_at is not None:
        return f"The driver ended without a report ({state}). {lifecycle.loss_note(task)}"
    last_line = _last_line(task.pk)
    reason = f" Its last line was: {last_line}" if last_line else " Spark's worker could not start it: see its log."
    return f"The driver ended before it reported ({state}).{'' if driver.reason and not last_line else reason}"


def _last_line(name: str) -> str:
    try:
        address = ClusterDriver.objects.get(pk=name).log_address
        tail = cluster_drivers.read_log(address, -_REASON_BYTES, _REASON_BYTES)[1] if address else b""
    except OSError:
        return ""
    lines = [line for line in tail.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:1000] if lines else ""


def _unowned(names: dict[str, Driver]) -> list[str]:
    """Of drivers that run, those whose task or resident ended some time ago; of pods, those that are kept no longer."""
    running = [name for name, driver in names.items() if not driver.has_ended]
    ended = Q(pk__in=running, ended_at__lt=timezone.now() - KILL_GRACE)
    if spark_conf.on_kubernetes():
        ended |= Q(pk__in=list(names), ended_at__lt=timezone.now() - POD_KEPT)
    return [
        *Task.objects.filter(ended).values_list("pk", flat=True),
        *Resident.objects.filter(ended).values_list("pk", flat=True),
    ]


def _forget_old() -> None:
    old = ClusterDriver.objects.filter(submitted_at__lt=timezone.now() - KEPT)
    old.exclude(name__in=Task.objects.active().values("pk")).exclude(
        name__in=Resident.objects.filter(ended_at=None).values("pk")
    ).delete()
