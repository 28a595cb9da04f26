"""The real spark-submit makes a task's driver on Kubernetes, and Spark's driver its executor. The API server is a
stand-in, and starts no pod: one test runs what pods would run as processes of this machine.

Nothing cheaper shows what Spark's Kubernetes client sends, that the chart allows it, and that the image can run it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.embedded.home import PROJECT
from controlplane.spark import cluster_drivers, kubernetes, spark_conf
from controlplane.tasks.models import Task
from tests.integration.deep.test_helm_chart import LEAST, helm
from tests.support.django_cast import spec_for
from tests.support.go_programs import LONGEST_BUILD_S
from tests.support.kubernetes_api import NAMESPACE, KubernetesApi, kubernetes_api
from tests.support.kubernetes_schemas import check_documents
from tests.support.waiting import wait_for

pytestmark = pytest.mark.timeout(LONGEST_BUILD_S)
TASK = "index_share_Käse.und:Brot_" + "x" * 60  # neither a label nor the name of a pod
TOKEN = "hush-hush-hush"
MARK = "/etc/headgate/spark"  # where the chart mounts its templates


@pytest.fixture
def chart(tmp_path: Path) -> list[dict[str, Any]]:
    spark = {
        "master": "k8s://https://kubernetes.default.svc",
        "namespace": NAMESPACE,
        "credentialsSecret": "storage",
        "driverPod": {"nodeSelector": {"pool": "streams"}},
    }
    done = helm("template", {**LEAST, "spark": spark}, tmp_path, "shop")
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture
def api(chart: list[dict[str, Any]], settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With what the chart gives a worker as ``SPARK_CONF_DIR``."""
    [files] = [d["data"] for d in chart if d["kind"] == "ConfigMap"]
    for name, content in files.items():
        (tmp_path / name).write_text(content.replace(MARK, str(tmp_path)))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "api").mkdir()
    with kubernetes_api(tmp_path / "api") as server:
        settings.SPARK_MASTER, settings.SPARK_DEPLOY_MODE, settings.SPARK_SECRET = server.master, "cluster", ""
        settings.KUBERNETES_ACCOUNT = str(server.account)
        yield server


JOB = """
from pyspark import SparkContext

spark = SparkContext.getOrCreate()
print("sum", spark.parallelize(range(100), 2).map(lambda n: n * 2).sum(), flush=True)
spark.stop()
"""
INDEX = "local:///opt/headgate/ingestion/spark/index.py"


def submit(log: Path) -> tuple[int, str]:
    """Exit code, and what it has written."""
    task = Task(pk=TASK, spec=spec_for("submitted"), indexers_wanted=1, slots=32)
    command = cluster_drivers.submit_command(spark_conf.submit_conf(task), "ingestion.spark.index")
    own = {"HEADGATE_TASK_ID": TASK, "HEADGATE_TASK_TOKEN": TOKEN, "HEADGATE_URL": "http://web:8000"}
    environment = cluster_drivers.environment(own | {"HEADGATE_STOP_TIMEOUT": "5"}, "-XX:TieredStopAtLevel=1")
    assert TOKEN not in str(command)
    with cluster_drivers.standard_input(command, environment) as stdin, log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=stdin, stdout=output, stderr=output)
    cluster_drivers.wait_for(process, command)
    return process.returncode, log.read_text()


def test_spark_submit_makes_a_pod_that_kubernetes_takes(
    api: KubernetesApi, chart: list[dict[str, Any]], tmp_path: Path
) -> None:
    code, output = submit(tmp_path / "log")
    assert code == 0, output
    [pod], [secret] = api.all("pods"), api.all("secrets")
    name = pod["metadata"]["name"]
    assert cluster_drivers.submitted_as(output) == f"{NAMESPACE}:{name}"
    assert list(spark_conf.kubernetes_api().drivers()) == [f"{NAMESPACE}:{name}"]
    assert pod["metadata"]["labels"]["headgate-task"] == kubernetes.label_of(TASK)
    assert pod["metadata"]["annotations"]["headgate-task"] == TASK
    _check_driver(pod)
    # The token is in the Secret alone, and in nothing that the log or a ConfigMap has.
    assert secret["metadata"]["name"] == name
    assert (secret["stringData"]["HEADGATE_TASK_TOKEN"], secret["stringData"]["HEADGATE_TASK_ID"]) == (TOKEN, TASK)
    others = [made for made in api.objects.values() if made is not secret]
    assert TOKEN not in str(others) + output
    _check_properties(api, name)
    # What Spark has made goes with the pod.
    assert all(made["metadata"]["ownerReferences"][0]["name"] == name for made in others if made is not pod)
    _check_rights(api, chart)
    check_documents([*api.objects.values(), *_templates(chart)])


def _check_driver(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    [container] = spec["containers"]
    assert container["image"] == "headgate:0.1.0"
    assert container["args"][0] == "driver" and container["args"][-1] == INDEX
    # The chart's template is in it.
    assert spec["serviceAccountName"] == "shop-headgate-driver" and spec["nodeSelector"] == {"pool": "streams"}
    assert spec["securityContext"]["runAsUser"] == 10001 and spec["terminationGracePeriodSeconds"] == 60
    assert container["securityContext"]["readOnlyRootFilesystem"] and container["envFrom"]
    assert {"mountPath": "/tmp", "name": "tmp"} in container["volumeMounts"]
    variables = {v["name"]: v for v in container["env"]}
    for variable in kubernetes._SENT:
        reference = variables[variable]["valueFrom"]["secretKeyRef"]
        assert reference == {"name": pod["metadata"]["name"], "key": variable}


def _check_properties(api: KubernetesApi, pod: str) -> None:
    """Those that the driver reads, and the template of its executors."""
    maps = {key: value for made in api.all("configmaps") for key, value in made["data"].items()}
    properties = spark_conf.read_properties(maps["spark.properties"])
    assert properties["spark.kubernetes.executor.podNamePrefix"] == pod
    assert properties["spark.kubernetes.executor.label.headgate-task"] == kubernetes.label_of(TASK)
    assert properties["spark.authenticate"] == "true"
    template = yaml.safe_load(maps["podspec-configmap-key"])
    assert template["spec"]["automountServiceAccountToken"] is False


def _check_rights(api: KubernetesApi, chart: list[dict[str, Any]], part: str = "worker") -> None:
    """Its role allows all that was asked, and asks were made."""
    [role] = [d for d in chart if d["kind"] == "Role" and d["metadata"]["name"] == f"shop-headgate-{part}"]
    assert role["metadata"]["namespace"] == NAMESPACE
    allowed = {(verb, kind) for rule in role["rules"] for verb in rule["verbs"] for kind in rule["resources"]}
    assert ("create", "pods") in api.asked
    # What is applied is created, too, while it does not exist.
    asked = {*api.asked, *(("create", kind) for verb, kind in api.asked if verb == "patch")}
    assert asked <= allowed


def _templates(chart: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Complete, as Spark makes them: a container has an image."""
    [files] = [d["data"] for d in chart if d["kind"] == "ConfigMap"]
    pods = [yaml.safe_load(files[name]) for name in ("driver.yaml", "executor.yaml")]
    for pod in pods:
        pod["spec"]["containers"][0]["image"] = "headgate:0.1.0"
    return pods


def test_a_submission_that_may_not_make_pods_says_so_and_leaves_nothing(api: KubernetesApi, tmp_path: Path) -> None:
    api.forbidden = {("create", "pods")}
    code, output = submit(tmp_path / "log")
    assert code != 0
    assert 'pods is forbidden: User "headgate" cannot create resource' in output
    assert cluster_drivers.submitted_as(output) == ""
    assert not api.objects


def test_driver_and_executor_run_with_the_images_entrypoint(
    api: KubernetesApi, chart: list[dict[str, Any]], tmp_path: Path
) -> None:
    account = ((name, api.account / file) for name, file in (("oauthTokenFile", "token"), ("caCertFile", "ca.crt")))
    own = {f"spark.kubernetes.authenticate.driver.mounted.{name}": str(file) for name, file in account}
    own |= {"spark.kubernetes.driver.master": api.master.removeprefix("k8s://"), "spark.executor.instances": "1"}
    own |= {"spark.dynamicAllocation.enabled": "false"}
    with (tmp_path / "spark-defaults.conf").open("a") as file:
        file.writelines(f"{name} {value}\n" for name, value in own.items())
    code, output = submit(tmp_path / "log")
    assert code == 0, output
    (tmp_path / "job.py").write_text(JOB)
    api.asked.clear()
    [pod] = api.all("pods")
    with ExitStack() as ending:
        driver = _run(api, pod, tmp_path, ending)
        wait_for("the driver asks for an executor", lambda: len(api.all("pods")) == 2, 240)
        [executor] = [found for found in api.all("pods") if found is not pod]
        assert executor["metadata"]["labels"]["headgate-task"] == kubernetes.label_of(TASK)
        check_documents([executor])
        _run(api, executor, tmp_path, ending)
        assert driver.wait(240) == 0, (tmp_path / pod["metadata"]["name"] / "log").read_text()[-4000:]
    assert "\nsum 9900\n" in (tmp_path / pod["metadata"]["name"] / "log").read_text()
    _check_rights(api, chart, "driver")


def _run(api: KubernetesApi, pod: dict[str, Any], tmp_path: Path, ending: ExitStack) -> subprocess.Popen[bytes]:
    """What the pod's container runs, until the end of the test. Names of services are this machine."""
    [container] = pod["spec"]["containers"]
    folder = tmp_path / pod["metadata"]["name"]
    folder.mkdir()
    for made in api.all("configmaps"):
        for name, content in made["data"].items():
            local = content.replace(
                "/opt/spark/pod-template/pod-spec-template.yml", str(folder / "podspec-configmap-key")
            )
            (folder / name).write_text(re.sub(r"[\w-]+-driver-svc\.\w+\.svc", "127.0.0.1", local))
    fields = {"status.podIP": "127.0.0.1", "metadata.name": pod["metadata"]["name"]}
    variables = {"PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable}
    variables["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if key := source.get("secretKeyRef"):
            variables[variable["name"]] = api.objects["secrets", key["name"]]["stringData"][key["key"]]
        else:
            path = source.get("fieldRef", {}).get("fieldPath")
            variables[variable["name"]] = fields[path] if path else variable.get("value", "")
    variables |= {"SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    places = {INDEX: f"local://{tmp_path}/job.py", "/opt/spark/conf/spark.properties": str(folder / "spark.properties")}
    command = ["sh", str(PROJECT / "docker" / "entrypoint.sh"), *(places.get(a, a) for a in container["args"])]
    log = ending.enter_context((folder / "log").open("wb"))
    process = subprocess.Popen(command, env=variables, cwd=PROJECT, stdout=log, stderr=log)
    ending.callback(process.wait)
    ending.callback(process.kill)
    return process
