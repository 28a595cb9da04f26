"""How applications are submitted to Kubernetes, what is read in its pods, and what its settings must say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from controlplane.config import env
from controlplane.embedded.home import PROJECT
from controlplane.spark import cluster_drivers, kubernetes, spark_conf
from controlplane.spark.cluster_state import Driver
from controlplane.tasks.models import Task
from tests.support.django_cast import spec_for

MASTER = "k8s://https://api.example:6443"
VARIABLES = (
    "HEADGATE_SPARK_MASTER",
    "HEADGATE_SPARK_DEPLOY_MODE",
    "HEADGATE_SPARK_MASTER_WEB",
    "HEADGATE_SPARK_SECRET",
)


def task(name: str = "the-task") -> Task:
    return Task(pk=name, spec=spec_for("sized", taskCount=3), indexers_wanted=3, slots=32)


@pytest.fixture
def operator_file(settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    settings.SPARK_MASTER, settings.SPARK_DEPLOY_MODE, settings.SPARK_PYTHON = MASTER, "cluster", "shipped"
    settings.SPARK_SECRET, settings.KUBERNETES_ACCOUNT = "", str(tmp_path / "account")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.kubernetes.container.image registry.example/headgate:1\n")
    return file


def test_a_submission_ends_and_its_pods_are_found_by_the_task(operator_file: Path) -> None:
    conf = spark_conf.submit_conf(task())
    assert conf["spark.kubernetes.submission.waitAppCompletion"] == "false"
    label = conf["spark.kubernetes.driver.label.headgate-task"]
    assert label == conf["spark.kubernetes.executor.label.headgate-task"] == kubernetes.label_of("the-task")
    assert conf["spark.kubernetes.namespace"] == "default"
    assert conf["spark.authenticate"] == "true"  # with a secret that Spark makes
    assert conf["spark.dynamicAllocation.initialExecutors"] == "3"
    assert not {"spark.files", "spark.kubernetes.authenticate.submission.caCertFile"} & set(conf), "the image has it"


@pytest.mark.parametrize("name", ["the-task", "index_Käse.und:Brot_" + "x" * 250, "***"])
def test_names_are_those_that_kubernetes_takes_and_new_for_each_attempt(operator_file: Path, name: str) -> None:
    first, second = (spark_conf.submit_conf(task(name)) for _ in range(2))
    pod, label = first["spark.kubernetes.driver.pod.name"], first["spark.kubernetes.driver.label.headgate-task"]
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])", pod)
    assert re.fullmatch(r"[a-z0-9]{1,63}", label)
    assert pod != second["spark.kubernetes.driver.pod.name"]
    assert label == second["spark.kubernetes.driver.label.headgate-task"]


def test_the_token_is_on_no_command_line(operator_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 22 of the security checklist."""
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    command = cluster_drivers.submit_command(spark_conf.submit_conf(task()), "ingestion.spark.index")
    environment = cluster_drivers.environment({"HEADGATE_TASK_ID": "the-task", "HEADGATE_TASK_TOKEN": "hush"}, "-Xint")
    assert "hush" not in str(command)
    assert environment["HEADGATE_TASK_TOKEN"] == "hush"
    assert not {"HEADGATE_ON_CLUSTER", "HEADGATE_SPARK_MASTERS", "PYSPARK_PYTHON"} & set(environment)
    assert command[command.index("--master") + 1] == MASTER
    assert command[command.index("--properties-file") + 1] == str(operator_file)
    pod = kubernetes.pod_of(command)
    assert f"spark.kubernetes.driver.secretKeyRef.HEADGATE_TASK_TOKEN={pod}:HEADGATE_TASK_TOKEN" in command


def test_what_runs_is_where_the_image_has_it(operator_file: Path) -> None:
    command = cluster_drivers.submit_command(spark_conf.submit_conf(task()), "ingestion.spark.index")
    folder, _, file = command[-1].removeprefix("local://").partition("/ingestion/")
    assert f"WORKDIR {folder}\n" in (PROJECT / "Dockerfile").read_text()
    assert (PROJECT / "ingestion" / file).is_file()


def test_without_an_image_nothing_is_submitted(operator_file: Path) -> None:
    operator_file.write_text("spark.kubernetes.namespace streams\n")
    with pytest.raises(OSError, match=r"names no spark\.kubernetes\.container\.image"):
        spark_conf.submit_conf(task())


def test_a_fixed_size_is_a_number_of_executors(operator_file: Path) -> None:
    operator_file.write_text(operator_file.read_text() + "spark.executor.cores 4\n")
    conf = spark_conf.resident_conf("compaction", 5)
    assert conf["spark.executor.instances"] == "2"
    assert "spark.cores.max" not in conf


def test_the_account_is_that_of_the_pod_unless_the_operator_names_another(operator_file: Path, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    for name, content in (("namespace", "own\n"), ("token", "t"), ("ca.crt", "c")):
        (account / name).write_text(content)
    conf = spark_conf.submit_conf(task())
    assert conf["spark.kubernetes.namespace"] == "own"
    assert conf["spark.kubernetes.authenticate.submission.oauthTokenFile"] == str(account / "token")
    assert conf["spark.kubernetes.authenticate.submission.caCertFile"] == str(account / "ca.crt")
    other = "spark.kubernetes.namespace other\nspark.kubernetes.authenticate.submission.oauthTokenFile /o/token\n"
    operator_file.write_text(operator_file.read_text() + other)
    api = spark_conf.kubernetes_api()
    assert (api.namespace, api.token_file, api.ca_file) == ("other", Path("/o/token"), account / "ca.crt")


def test_its_id_is_what_spark_calls_it(operator_file: Path) -> None:
    output = (
        "INFO Client: Deployed Spark application the-task with application ID spark-1f and submission ID "
        "streams:headgate-the-task-1a2b3c4d into Kubernetes\n"
    )
    assert cluster_drivers.submitted_as(output) == "streams:headgate-the-task-1a2b3c4d"
    assert cluster_drivers.submitted_as("INFO Client: something else\n") == ""


DRIVER = {"name": "main", "env": [{"name": "SPARK_DRIVER_BIND_ADDRESS"}]}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}


def terminated(code: int, reason: str) -> dict[str, Any]:
    return {"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}}


@pytest.mark.parametrize(
    ("status", "driver"),
    [
        ({}, Driver("SUBMITTED")),
        ({"phase": "Pending"}, Driver("SUBMITTED")),
        ({"phase": "Pending", "conditions": [UNSCHEDULABLE]}, Driver("SUBMITTED", reason="Unschedulable: 0/3 nodes")),
        (
            {"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff", "no such tag")]},
            Driver("SUBMITTED", reason="ImagePullBackOff: no such tag", cannot_start=True),
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{**waiting("InvalidImageName"), "name": "first"}]},
            Driver("SUBMITTED", reason="InvalidImageName", cannot_start=True),
        ),
        ({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, Driver("SUBMITTED")),
        (
            {"phase": "Pending", "containerStatuses": [waiting("ErrImagePull")]},
            Driver("SUBMITTED"),
        ),  # it is tried again
        ({"phase": "Running"}, Driver("RUNNING", "main")),
        ({"phase": "Unknown"}, Driver("RUNNING", "main")),  # heartbeats decide
        (
            {"phase": "Succeeded", "containerStatuses": [terminated(0, "Completed")]},
            Driver("FINISHED", "main", "Completed"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [terminated(137, "OOMKilled")]},
            Driver("FAILED", "main", "OOMKilled, exit code 137"),
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
            Driver("FAILED", "", "Evicted: The node was low on memory."),
        ),
        # Another container of the template runs on.
        (
            {"phase": "Running", "containerStatuses": [terminated(1, "Error")]},
            Driver("FAILED", "main", "Error, exit code 1"),
        ),
    ],
)
def test_what_a_pod_says_of_its_driver(status: dict[str, Any], driver: Driver) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "beside"}, DRIVER]}, "status": status}
    assert kubernetes._driver(pod) == driver


# Settings


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "value", ["k8s://api.example:6443", "k8s://ftp://a", "k8s://", "k8s://https://u@a", "k8s://https://a/b"]
)
def test_the_master_is_a_whole_address(variables: pytest.MonkeyPatch, value: str) -> None:
    variables.setenv("HEADGATE_SPARK_MASTER", value)
    with pytest.raises(env.EnvironmentProblem, match=r"such as k8s://https://kubernetes\.default\.svc"):
        env.spark_master()
    variables.setenv("HEADGATE_SPARK_MASTER", MASTER + "/")
    assert env.spark_master() == MASTER
    assert env.spark_master_web(MASTER) == ["https://api.example:6443"]


def test_drivers_run_in_the_cluster_only_and_spark_makes_the_secret(variables: pytest.MonkeyPatch) -> None:
    assert (env.deploy_mode(MASTER), env.spark_secret(MASTER)) == ("cluster", "")
    variables.setenv("HEADGATE_SPARK_DEPLOY_MODE", "client")
    with pytest.raises(env.EnvironmentProblem, match="in cluster mode only"):
        env.deploy_mode(MASTER)


@pytest.mark.parametrize("master", [MASTER, "k8s://https://127.0.0.1:6443"])
def test_pods_do_not_reach_loopback(variables: pytest.MonkeyPatch, master: str) -> None:
    """Wherever the API server is."""
    variables.setenv("HEADGATE_INTERNAL_URL", "http://127.0.0.1:8000")
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_INTERNAL_URL is"):
        env.internal_url(master)
