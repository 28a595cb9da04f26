"""Drivers on Kubernetes, by what its API server says of their pods: a stand-in answers as it does, and runs none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from controlplane.common.errors import Unavailable
from controlplane.operations.doctor import outside
from controlplane.spark import cluster_drivers, kubernetes, spark_conf, spark_master
from controlplane.tasks import capacity, driver_rounds, drivers, host_logs, launcher, slot_waits
from controlplane.tasks.models import ClusterDriver, Status, Task
from tests.support.django_cast import Cast
from tests.support.kubernetes_api import NAMESPACE, KubernetesApi, kubernetes_api
from tests.support.submitted import submitted

POD = "headgate-the-task-1a2b3c4d"
ID = f"{NAMESPACE}:{POD}"


@pytest.fixture
def api(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    with kubernetes_api(tmp_path) as server:
        settings.SPARK_MASTER, settings.SPARK_MASTER_WEB = server.master, [server.master.removeprefix("k8s://")]
        settings.SPARK_DEPLOY_MODE, settings.TASK_DIR, settings.WORKER_CAPACITY = "cluster", tmp_path / "tasks", 0
        settings.KUBERNETES_ACCOUNT, settings.SPARK_SECRET = str(server.account), ""
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        (tmp_path / "spark-defaults.conf").write_text("spark.kubernetes.container.image headgate:1\n")
        cache.delete("spark.cluster")
        yield server
        cache.delete("spark.cluster")


@pytest.fixture
def task(cast: Cast, api: KubernetesApi) -> Task:
    add_pod(api, cast.task.pk)
    api.put("secrets", {"metadata": {"name": POD}})
    return submitted(cast, ID)


def add_pod(api: KubernetesApi, task_id: str, name: str = POD, role: str = "driver", **spec: Any) -> dict[str, Any]:
    labels = {"headgate-task": kubernetes.label_of(task_id), "spark-role": role}
    container = {"name": "spark", "env": [{"name": "SPARK_DRIVER_BIND_ADDRESS"}]}
    document = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}
    return api.put("pods", document)


def set_status(api: KubernetesApi, phase: str, **state: Any) -> None:
    containers = [{"name": "spark", "state": state}] if state else []
    api.objects["pods", POD]["status"] = {"phase": phase, "containerStatuses": containers}


def watched(task: Task) -> Task:
    cache.delete("spark.cluster")
    driver_rounds.watch()
    task.refresh_from_db()
    return task


def test_one_that_waits_for_a_node_says_why(task: Task, api: KubernetesApi) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "3 Insufficient cpu."}
    api.objects["pods", POD]["status"]["conditions"] = [condition]
    assert watched(task).message == f"{driver_rounds._WAITS} Unschedulable: 3 Insufficient cpu."
    assert task.status == Status.PENDING
    assert task.launched_at is not None and timezone.now() - task.launched_at < timedelta(seconds=30)


def test_one_whose_image_cannot_be_pulled_has_failed_and_its_pod_goes(task: Task, api: KubernetesApi) -> None:
    set_status(api, "Pending", waiting={"reason": "ImagePullBackOff", "message": 'Back-off pulling image "headgate:9"'})
    assert watched(task).status == Status.FAILED
    assert task.error == (
        'Kubernetes cannot start the driver\'s pod. ImagePullBackOff: Back-off pulling image "headgate:9"'
    )
    Task.objects.update(ended_at=timezone.now() - timedelta(seconds=11))
    watched(task)
    assert not api.all("pods") and not api.all("secrets")


def test_one_that_dies_before_its_first_word_says_why(task: Task, api: KubernetesApi) -> None:
    set_status(api, "Running", running={})
    assert watched(task).status == Status.PENDING
    api.logs[POD] = b"a line\nModuleNotFoundError: no module\n\n"
    set_status(api, "Failed", terminated={"exitCode": 1, "reason": "Error"})
    assert watched(task).status == Status.FAILED
    assert task.error == (
        "The driver ended before it reported (FAILED on the Spark cluster: Error, exit code 1). "
        "Its last line was: ModuleNotFoundError: no module"
    )


def test_one_that_reads_and_is_killed_for_its_memory_says_so(task: Task, api: KubernetesApi) -> None:
    ago = timezone.now() - timedelta(seconds=5)
    Task.objects.update(status=Status.RUNNING, last_heartbeat_at=ago, started_at=ago)
    set_status(api, "Failed", terminated={"exitCode": 137, "reason": "OOMKilled"})
    assert watched(task).status == Status.FAILED
    assert "(FAILED on the Spark cluster: OOMKilled, exit code 137)" in task.error


def test_one_whose_pod_was_deleted_has_failed(task: Task, api: KubernetesApi) -> None:
    Task.objects.update(status=Status.RUNNING, last_heartbeat_at=timezone.now() + timedelta(minutes=1))
    del api.objects["pods", POD]
    assert watched(task).status == Status.RUNNING  # it may say its last word yet
    Task.objects.update(last_heartbeat_at=timezone.now() - timedelta(seconds=5))
    assert watched(task).status == Status.FAILED
    assert "its pod is gone: somebody deleted it, or its node was lost" in task.error
    assert not api.all("secrets")


def test_a_driver_of_another_cluster_is_not_missed(task: Task, api: KubernetesApi) -> None:
    """The setting was changed while tasks ran; or the server does not answer just now."""
    Task.objects.update(status=Status.RUNNING, last_heartbeat_at=timezone.now() - timedelta(seconds=5))
    ClusterDriver.objects.update(driver_id="driver-20261129-0001")
    assert watched(task).status == Status.RUNNING
    ClusterDriver.objects.update(driver_id=f"{NAMESPACE}:other")
    api.forbidden = {("get", "pods")}
    assert watched(task).status == Status.RUNNING


def test_one_whose_task_has_ended_is_deleted_and_one_that_ended_is_kept_for_its_log(
    task: Task, api: KubernetesApi
) -> None:
    set_status(api, "Running", running={})
    Task.objects.update(status=Status.FAILED, ended_at=timezone.now() - timedelta(seconds=11))
    set_status(api, "Succeeded", terminated={"exitCode": 0})
    watched(task)
    assert api.all("pods")
    set_status(api, "Running", running={})
    watched(task)
    assert not api.all("pods") and not api.all("secrets")
    add_pod(api, task.pk)
    set_status(api, "Succeeded", terminated={"exitCode": 0})
    Task.objects.update(ended_at=timezone.now() - timedelta(hours=1, seconds=1))
    watched(task)
    assert not api.all("pods")


def test_all_pages_of_a_long_list_are_read(task: Task, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_PAGE", 2)
    for n in range(4):
        add_pod(api, f"task-{n}", f"driver-{n}")
    add_pod(api, task.pk, "executor", "executor")
    api.put("pods", {"metadata": {"name": "strange", "labels": {"spark-role": "driver"}}, "spec": {"containers": []}})
    found = spark_conf.kubernetes_api().drivers()
    assert sorted(found) == sorted([ID, *(f"{NAMESPACE}:driver-{n}" for n in range(4))])
    assert len(api.queries) == 3


def test_an_executor_that_has_a_node_starts(task: Task, api: KubernetesApi) -> None:
    add_pod(api, task.pk, "executor-1", "executor")
    add_pod(api, "another", "executor-2", "executor", nodeName="a")
    assert not spark_master.has_cores(task.pk)
    add_pod(api, task.pk, "executor-1", "executor", nodeName="a")
    assert spark_master.has_cores(task.pk)
    api.forbidden = {("list", "pods")}
    assert not spark_master.has_cores(task.pk)


def test_nothing_is_said_of_cores_that_nobody_knows(task: Task) -> None:
    assert (capacity.shown_pool().size, capacity.shown_pool().is_of_spark) == (None, False)
    assert slot_waits.overlap_warning(1000) == ""
    assert "cores are in use" not in capacity._health_without_slot(task).cause


def test_its_log_is_read_in_its_pod(task: Task, api: KubernetesApi) -> None:
    set_status(api, "Running", running={})
    log = "".join(f"line {n}\n" for n in range(100)).encode()
    api.logs[POD], size = log, len(log)
    watched(task)
    for offset, count, part in (
        (-16, 16, b"line 98\nline 99\n"),
        (7, 7, b"line 1\n"),
        (0, size, log),
        (size - 8, 500, b"line 99\n"),
        (size + 5, 7, b""),
        (0, 0, b""),
    ):
        assert host_logs.read("ingest-1", task.pk, offset, count) == (size, part)
    del api.objects["pods", POD]
    with pytest.raises(Unavailable, match=f'Kubernetes does not give it: pods "{POD}" not found'):
        host_logs.read("ingest-1", task.pk, 0, 10)


def test_while_the_server_does_not_answer_nothing_is_launched_or_concluded(task: Task, api: KubernetesApi) -> None:
    api.forbidden = {("list", "pods")}
    assert watched(task).status == Status.PENDING
    Task.objects.filter(pk=task.pk).update(launched_at=None, host="", message="")
    assert launcher.launch(task.pk) is False
    task.refresh_from_db()
    assert task.message == "Its driver waits: Kubernetes' API server gives no list of pods. manage.py doctor says why."
    api.forbidden = set()
    assert not drivers.wait_for_master(task)


def test_a_submission_that_is_refused_leaves_no_secret(task: Task, api: KubernetesApi) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit(int(sys.argv[2]))", f"{kubernetes._POD_CONF}=new"]
    environment = dict.fromkeys(kubernetes._SENT, "x")
    for code, kept in ((0, [POD, "new"]), (1, [POD])):
        api.objects.pop(("secrets", "new"), None)
        with cluster_drivers.standard_input(command, environment):
            process = subprocess.Popen([*command, str(code)])
        cluster_drivers.wait_for(process, command)
        assert [secret["metadata"]["name"] for secret in api.all("secrets")] == kept
    api.forbidden = {("create", "secrets")}
    with (
        pytest.raises(OSError, match="did not make the driver's Secret: secrets is forbidden"),
        cluster_drivers.standard_input(command, environment),
    ):
        pass


def test_the_doctor_says_what_is_missing(task: Task, api: KubernetesApi, tmp_path: Path) -> None:
    def found() -> tuple[str, str]:
        first = next(finding for finding in outside.check_spark() if finding.applies)
        return first.state, first.found

    state, text = found()
    assert state == outside.OK
    assert text.endswith(f"; 1 drivers have pods in the namespace {NAMESPACE}")
    api.forbidden = {("list", "pods")}
    state, text = found()
    assert state == outside.FAIL
    assert text.startswith(f"tasks can't run in the namespace {NAMESPACE} of https://127.0.0.1:")
    assert text.endswith('pods is forbidden: User "headgate" cannot list resource')
    api.forbidden = set()
    (api.account / "token").write_text("old")
    assert found()[1].endswith("Unauthorized")
    (tmp_path / "spark-defaults.conf").write_text("")
    api.account.joinpath("token").write_text("the-account's-token")
    assert "names no spark.kubernetes.container.image" in found()[1]
