"""Starting applications: detached processes with their own log, found again by their heartbeats.

The token goes through the environment, never through the command line or Spark's configuration.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import IO

import psutil
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common import applications
from controlplane.common.processes import passed_environment
from controlplane.sources.spec_sources import FILL_MARK
from controlplane.spark import cluster_drivers, spark_conf
from controlplane.tasks import drivers, hosts, shared_applications, small_batches, spares
from controlplane.tasks.capacity import may_launch
from controlplane.tasks.lifecycle import end_task, new_token, unclaim
from controlplane.tasks.models import Resident, Status, Task
from controlplane.tasks.start_offsets import set_manual_start
from ingestion.specs.messages.spare import SpareOrder

# What runs as a plain process, without Spark: it reads little.
PLAIN_PROCESSES: dict[str, str] = {
    Task.Kind.REPAIR: "ingestion.task.repair",
    Task.Kind.REPLAY: "ingestion.task.replay",
    Task.Kind.REWIND: "ingestion.task.rewind",
}
_FILE_REPLAY = "ingestion.batch.replay"
_BATCH = "ingestion.spark.batch"
APPLICATION = Path("ingestion") / "spark" / "index.py"
_SHARED = "shared.py"
_PATIENCE_WITH_OTHERS = timedelta(seconds=20)  # another host has got the message, and starts an application


class GivenBack(Exception):
    """This host can't start the task's application, and another host may."""


def launch(task_id: str) -> bool:
    """Start a PENDING task's application. Called twice, it starts one: False when there was nothing to start.

    Without room for it, it goes on waiting: the watch hands it over again. So does one whose last process is still
    at its end. Raises ``GivenBack``.
    """
    waiting = Task.objects.filter(pk=task_id, status=Status.PENDING, launched_at=None).first()
    if waiting is None or waiting.is_of_segments or process_of(task_id) is not None:
        return False
    try:
        if waiting.kind not in PLAIN_PROCESSES:
            if spark_conf.drivers_on_cluster() and drivers.wait_for_master(waiting):
                return False
            if waiting.reads:
                set_manual_start(waiting)
            spark_conf.prepare_shipping()  # it may take two minutes, which is none of the application's time to start
        if waiting.shares_application and (shared := _launch_shared(waiting)) is not None:
            return shared
        task = _claimed(task_id)
        if task is None:
            return False
        _start(task, new_token(task))
    except OSError as error:
        if hosts.another_may_start():
            unclaim(waiting, f"Host {settings.HOST_NAME} could not start it: {error}. Another host is to.")
            raise GivenBack from error
        end_task(waiting, error=f"The application could not be started on host {settings.HOST_NAME}: {error}")
    return True


@transaction.atomic
def _claimed(task_id: str) -> Task | None:
    """The task, if it is this process that launches it, now that there is room for it."""
    unlaunched = Task.objects.filter(pk=task_id, status=Status.PENDING, launched_at=None)
    waiting = unlaunched.first()
    if waiting is None or not may_launch(waiting):
        return None
    # The row count decides who launches when the message is delivered twice.
    if not unlaunched.update(launched_at=timezone.now(), host=settings.HOST_NAME):
        return None
    drivers.begin(task_id, on_cluster=spark_conf.drivers_on_cluster() and waiting.kind not in PLAIN_PROCESSES)
    return Task.objects.get(pk=task_id)


def folder_of(task_id: str) -> Path:
    """The task's own folder: its log and its process id."""
    return Path(settings.TASK_DIR) / task_id


def scratch_of(task_id: str) -> Path:
    """Where the application keeps files on their way."""
    return folder_of(task_id) / "scratch"


def log_of(task_id: str) -> Path:
    """The application's log."""
    return folder_of(task_id) / "spark.log"


def _start(task: Task, token: str) -> None:
    if _start_spare_on(task, token):
        return
    plain = task.kind in PLAIN_PROCESSES
    command = [sys.executable, "-m", _plain_module(task)] if plain else _spark_command(task)
    java = _BATCH_JAVA_OPTIONS if task.is_batch else _JAVA_OPTIONS
    environment = _environment(task.pk, token, plain, java)
    _start_process(task.pk, command, environment, _niceness(task))


def _plain_module(task: Task) -> str:
    return _FILE_REPLAY if task.replays_files else PLAIN_PROCESSES[task.kind]


def _niceness(task: Task) -> int:
    """Of what reads old records."""
    reads_old = task.kind in PLAIN_PROCESSES or FILL_MARK in (task.supervisor_id or "")
    return int(settings.BACKFILL_NICENESS) if reads_old else 0


def _launch_shared(task: Task) -> bool | None:
    """Hand a task over to an application that serves others, too. False while it has to wait for one that starts.

    None: none can be started here, and it is to have its own.
    """
    team = task.datasource.team_id
    with shared_applications.turn(team):
        version = spares.version_of(*_spare_process("shared", _SHARED))
        application = shared_applications.with_place(team, version)
        if application is None:
            # One that is started for a task without a place would end unused, and the next one would be started.
            if shared_applications.is_starting(team, version) or not may_launch(task):
                return False
            if shared_applications.may_start(team):
                _start_shared(team, version)
                return False
            Task.objects.filter(pk=task.pk).update(shares_application=False, shared_application="")
            return None
        claimed = _claimed(task.pk)
        if claimed is None:
            return False
        order = SpareOrder(task_id=task.pk, token=new_token(claimed))
        if shared_applications.hand_over(application, folder_of(task.pk), order):
            Task.objects.filter(pk=task.pk).update(shared_application=application.name)
            return True
    unclaim(task)
    return False


def _start_shared(team: int, version: str) -> None:
    name = shared_applications.new_name(team)
    shared_applications.prepare(folder_of(name), version)
    _start_process(name, *_spare_process(name, _SHARED))


def launch_sharing() -> None:
    """Launch what waits for an application of this host, or for too long for one of another host."""
    waiting = Task.objects.filter(status=Status.PENDING, launched_at=None, shares_application=True)
    old = timezone.now() - _PATIENCE_WITH_OTHERS
    without_place = set()
    for task in waiting.select_related("datasource").order_by("created_at"):
        team = task.datasource.team_id
        if team not in without_place and (task.created_at < old or shared_applications.folders(team)):
            with suppress(GivenBack):
                without_place |= set() if launch(task.pk) else {team}  # those behind it would not get one, either


def _start_spare_on(task: Task, token: str) -> bool:
    """Whether an application that waited serves the task from now on."""
    if not has_spares() or folder_of(task.pk).exists():
        return False
    module = _module_of_spare(task)
    if module is None:
        return False
    try:
        version = spare_version()
    except OSError:
        return False  # the code is being replaced
    if spares.hand_over(version, folder_of(task.pk), SpareOrder(task_id=task.pk, token=token, module=module)):
        process, niceness = process_of(task.pk), _niceness(task)
        if process is not None and niceness:
            _lower_priority(process.pid, niceness)
        return True
    terminate(task.pk, signal.SIGKILL)  # one that died while it was handed over may have left its JVM
    remove_scratch(task.pk)
    return False


def _module_of_spare(task: Task) -> str | None:
    """See ``SpareOrder``; None where the task starts without a spare. A rewind has many tasks, and nobody waits."""
    if task.reads and FILL_MARK not in (task.supervisor_id or "") and task.slots == settings.SPARK_SLOTS:
        return ""
    if task.kind in (Task.Kind.REPAIR, Task.Kind.REPLAY):
        return _plain_module(task)
    return _BATCH if task.is_batch and small_batches.is_small(task) else None


def has_spares() -> bool:
    """Whether applications are to wait for tasks on this host."""
    return settings.SPARE_APPLICATIONS > 0 and spark_conf.is_local()


def start_spare() -> None:
    """Start an application that waits for a task. Raises ``OSError``."""
    name = spares.new_name()
    spares.prepare(folder_of(name), spare_version())
    _start_process(name, *_spare_process(name))


def spare_version() -> str:
    """With what a spare would be started now: one that was started with anything else serves no task."""
    return spares.version_of(*_spare_process("spare"))


def _spare_process(name: str, script: str = APPLICATION.name) -> tuple[list[str], dict[str, str]]:
    """The command and the environment. The task's id and token come later, through a pipe."""
    conf = spark_conf.resident_conf(name, settings.SPARK_SLOTS)
    command = _submit_command(settings.SPARK_SLOTS, conf, APPLICATION.with_name(script))
    environment = _environment(name, "", plain=False) | {"HEADGATE_SPARE": str(folder_of(name).absolute())}
    return command, {k: v for k, v in environment.items() if k not in ("HEADGATE_TASK_ID", "HEADGATE_TASK_TOKEN")}


def start_resident(resident: Resident, script: str, token: str) -> None:
    """Start an application that serves all datasources. Raises ``OSError``."""
    conf = spark_conf.resident_conf(resident.pk, resident.slots)
    command = _submit_command(resident.slots, conf, APPLICATION.with_name(script))
    drivers.begin(resident.pk, on_cluster=spark_conf.drivers_on_cluster())
    _start_process(resident.pk, command, _environment(resident.pk, token, plain=False))


def _start_process(name: str, command: list[str], environment: dict[str, str], niceness: int = 0) -> None:
    folder = folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    scratch_of(name).mkdir(exist_ok=True, mode=0o700)  # rows are in it, and Spark does not encrypt those here
    applications.forget_process(folder)
    with log_of(name).open("ab") as log, cluster_drivers.standard_input(command, environment) as stdin:
        if "--deploy-mode" in command:
            log.write(drivers.first_line(name).encode())
            log.flush()
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=settings.BASE_DIR,
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    if niceness:
        _lower_priority(process.pid, niceness)
    applications.record_process(folder, process.pid)
    # Its parent is this process, which must wait for it: else it stays a zombie until the next launch here.
    Thread(target=cluster_drivers.wait_for, args=(process, command), name=f"wait for {name}", daemon=True).start()


def _lower_priority(leader: int, niceness: int) -> None:
    """Of a process and of all that it will start, against this one's.

    With ``sched_autogroup_enabled`` Linux compares sessions first: the session that it leads gets the same.
    """
    lowered = min(19, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    with suppress(OSError):  # it has ended, or this system has no sessions of that kind
        os.setpriority(os.PRIO_PGRP, leader, lowered)
        Path(f"/proc/{leader}/autogroup").write_text(str(lowered))


def _spark_command(task: Task) -> list[str]:
    script = APPLICATION.with_name("batch.py") if task.is_batch else APPLICATION
    return _submit_command(task.slots, spark_conf.submit_conf(task), script)


def _submit_command(slots: int, conf: Mapping[str, str], application: Path) -> list[str]:
    if spark_conf.drivers_on_cluster():
        return cluster_drivers.submit_command(conf, ".".join(application.with_suffix("").parts))
    # For an indexer one failure ends the Spark job: the driver then starts it again with back-off and a new epoch.
    master = f"local[{slots},{conf['spark.task.maxFailures']}]" if spark_conf.is_local() else settings.SPARK_MASTER
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    return [*command, str(Path(settings.BASE_DIR) / application)]


# The driver's JVM starts jobs and waits: what it would compile well it does not run for long. That of a batch task
# carries all that was read, which takes several times as long unless it is compiled well.
_BATCH_JAVA_OPTIONS = "-XX:+UseSerialGC"
_JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 {_BATCH_JAVA_OPTIONS}"


def _environment(name: str, token: str, plain: bool, java: str = _JAVA_OPTIONS) -> dict[str, str]:
    if not plain and spark_conf.drivers_on_cluster():
        return cluster_drivers.environment(_own_variables(name, token), java)
    return {
        **passed_environment(),
        **_own_variables(name, token),
        "HEADGATE_SCRATCH": str(scratch_of(name)),
        "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", java),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(settings.BASE_DIR),
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_DIRS": str(scratch_of(name)),
        **({} if plain else spark_conf.environment()),
    }


def _own_variables(name: str, token: str) -> dict[str, str]:
    return {
        "HEADGATE_TASK_ID": name,
        "HEADGATE_TASK_TOKEN": token,
        "HEADGATE_URL": settings.INTERNAL_URL,
        "HEADGATE_STOP_TIMEOUT": str(settings.STOP_TIMEOUT),
    }


def terminate(task_id: str, sig: signal.Signals = signal.SIGTERM) -> bool:
    """Signal a task's process group, if the process is still the one that was started here, and serves no others."""
    process = process_of(task_id)
    if process is None or applications.is_shared(folder_of(task_id)):
        return False
    try:
        os.killpg(process.pid, sig)
    except ProcessLookupError:
        return False
    return True


def kill(name: str) -> None:
    """Kill a task's or resident's process here, and its driver on a Spark cluster; what it left here goes."""
    terminate(name, signal.SIGKILL)
    if applications.is_shared(folder_of(name)):
        applications.forget_process(folder_of(name))  # it goes on, and this task has no more to do with it
    drivers.kill(name)
    remove_scratch(name)


def record_submissions() -> None:
    """Keep the ids of drivers that this machine has submitted to a Spark cluster."""
    for name in drivers.unrecorded():
        is_dead(name)


def limit_log(task_id: str) -> None:
    """Of a log that has become too large the last half is kept. Whoever writes it goes on at its end, wherever."""
    try:
        # O_APPEND, as its writer has it: what comes in meanwhile is not written over.
        with os.fdopen(os.open(log_of(task_id), os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW), "r+b") as log:
            size = os.fstat(log.fileno()).st_size
            if size > settings.TASK_LOG_BYTES:
                _keep_end(log, size - settings.TASK_LOG_BYTES // 2)
    except OSError:
        return


def _keep_end(log: IO[bytes], start: int) -> None:
    log.seek(start)
    log.readline()  # the rest of a line that is cut
    dropped, tail = log.tell(), log.read()
    log.truncate(0)
    note = f"({dropped:,} bytes before this were dropped: HEADGATE_TASK_LOG_MEBIBYTES)\n"
    os.write(log.fileno(), note.encode() + tail)


def remove_scratch(task_id: str) -> None:
    """Remove what a killed application left behind; its log stays."""
    shutil.rmtree(scratch_of(task_id), ignore_errors=True)


def is_dead(task_id: str) -> bool:
    """Whether a task's process was started on this machine and is no more, or serves others and not it any more. One
    that has submitted a driver to a Spark cluster is done; its driver is not dead."""
    if process_of(task_id) is not None:
        return shared_applications.has_left(folder_of(task_id))
    return has_process(task_id) and not drivers.record(task_id, log_of(task_id))


def has_process(task_id: str) -> bool:
    """Whether a process of it was ever started on this machine."""
    return applications.process_in(folder_of(task_id)) is not None


def was_stopped(task_id: str) -> bool:
    """Whether a task's process was told to end by whoever stopped the stack or its machine."""
    return applications.was_stopped(folder_of(task_id))


def process_of(task_id: str) -> psutil.Process | None:
    """The running application's first process on this machine, or None."""
    identity = applications.process_in(folder_of(task_id))
    return None if identity is None else identity.find()
