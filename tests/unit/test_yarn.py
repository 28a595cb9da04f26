"""How applications are submitted to YARN, and what is read in its ResourceManager's answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from controlplane.config import env
from controlplane.spark import cluster_drivers, shipping, spark_conf
from controlplane.tasks.models import Task
from tests.support.django_cast import spec_for

VARIABLES = ("HADOOP_CONF_DIR", "HEADGATE_SPARK_DEPLOY_MODE", "HEADGATE_SPARK_MASTER_WEB", "HEADGATE_SPARK_SECRET")


def task(**io_config: int) -> Task:
    return Task(
        pk="the-task", spec=spec_for("sized", **io_config), indexers_wanted=io_config.get("taskCount", 1), slots=32
    )


@pytest.fixture
def on_yarn(settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the operator's configuration, which is empty."""
    settings.SPARK_MASTER, settings.SPARK_DEPLOY_MODE, settings.SPARK_PYTHON = "yarn", "cluster", "installed"
    settings.SPARK_SECRET, settings.HADOOP_CONF_DIR, settings.BASE_DIR = "", "/etc/hadoop", Path("/opt/headgate")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


def test_a_submission_ends_and_yarn_starts_no_driver_again(on_yarn: Path) -> None:
    (on_yarn / "spark-defaults.conf").write_text("spark.yarn.tags team-a\nspark.yarn.maxAppAttempts 4\n")
    conf = spark_conf.submit_conf(task(taskCount=3))
    assert conf["spark.yarn.submit.waitAppCompletion"] == "false"
    assert conf["spark.yarn.maxAppAttempts"] == "1"
    assert conf["spark.yarn.tags"] == "headgate,team-a"
    assert conf["spark.dynamicAllocation.initialExecutors"] == "3"
    assert conf["spark.executorEnv.PYTHONPATH"] == "/opt/headgate"
    assert conf["spark.authenticate"] == "true"  # with a secret that Spark makes


def test_a_fixed_size_is_a_number_of_executors(on_yarn: Path) -> None:
    """YARN knows no ``spark.cores.max``."""
    (on_yarn / "spark-defaults.conf").write_text("spark.executor.cores 4\nspark.dynamicAllocation.enabled false\n")
    for conf, executors in (
        (spark_conf.submit_conf(task(taskCount=6)), "2"),
        (spark_conf.resident_conf("compaction", 5), "2"),
        (spark_conf.resident_conf("compaction", 1), "1"),
    ):
        assert conf["spark.executor.instances"] == executors
        assert "spark.cores.max" not in conf


def test_python_goes_to_drivers_and_executors_beside_the_operators_files(
    on_yarn: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SPARK_PYTHON = "shipped"
    files = (Path("/a/headgate-python"), Path("/a/b.packed"))
    monkeypatch.setattr(shipping, "ship_python", lambda: shipping.ShippedPython(files))
    (on_yarn / "spark-defaults.conf").write_text("spark.files /etc/a\nspark.yarn.dist.files /etc/b\n")
    conf = spark_conf.submit_conf(task())
    assert conf["spark.yarn.dist.files"] == "/etc/a,/etc/b,/a/headgate-python,/a/b.packed"
    assert not {"spark.files", "spark.executorEnv.PYTHONPATH"} & set(conf)
    assert spark_conf.environment() == {
        "PYSPARK_PYTHON": "./headgate-python",
        "PYSPARK_DRIVER_PYTHON": "./headgate-python",
    }


def test_the_token_is_in_a_file_without_a_name_and_on_no_command_line(
    on_yarn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 22 of the security checklist."""
    monkeypatch.setenv("HADOOP_USER_NAME", "ingest")
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    (on_yarn / "spark-defaults.conf").write_text("spark.yarn.queue streams")
    command = cluster_drivers.submit_command(spark_conf.submit_conf(task()), "ingestion.spark.index")
    assert command[command.index("--master") + 1 : command.index("--master") + 4] == [
        "yarn",
        "--deploy-mode",
        "cluster",
    ]
    assert command[command.index("--properties-file") + 1] == "/dev/stdin"
    assert command[command.index("-cp") + 1].startswith("/etc/hadoop:")
    assert command[-1] == "/opt/headgate/ingestion/spark/index.py"
    environment = cluster_drivers.environment({"HEADGATE_TASK_TOKEN": "hush"}, "-Xint")
    assert "hush" not in str(command)
    assert (environment["HADOOP_CONF_DIR"], environment["HADOOP_USER_NAME"]) == ("/etc/hadoop", "ingest")
    assert environment["SPARK_HOME"] == spark_conf.spark_home()
    with cluster_drivers.standard_input(command, environment) as file:
        sent = spark_conf.read_properties(file.read().decode())
    assert sent["spark.yarn.appMasterEnv.HEADGATE_TASK_TOKEN"] == "hush"
    assert sent["spark.yarn.appMasterEnv.JDK_JAVA_OPTIONS"] == "-Xint"
    assert (sent["spark.yarn.queue"], sent["spark.yarn.appMasterEnv.HEADGATE_ON_CLUSTER"]) == ("streams", "1")
    assert not [
        name for name in sent if name.endswith(("Env.PATH", "Env.HOME", "Env.SPARK_HOME", "Env.HADOOP_CONF_DIR"))
    ]


def test_what_is_not_submitted_to_yarn_reads_nothing(on_yarn: Path) -> None:
    with cluster_drivers.standard_input(
        ["python", "-m", "ingestion.task.repair"], {"HEADGATE_TASK_TOKEN": "t"}
    ) as file:
        assert file.read() == b""


def test_its_id_is_read_from_the_submissions_output(on_yarn: Path) -> None:
    output = (
        "INFO Client: Submitting application application_1764419000000_0007 to ResourceManager\n"
        "INFO YarnClientImpl: Submitted application application_1764419000000_0007\n"
    )
    assert cluster_drivers.submitted_as(output) == "application_1764419000000_0007"
    assert cluster_drivers.submitted_as(output.splitlines()[0]) == ""


# Settings


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_yarn_needs_its_page_and_its_configuration(variables: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(env.EnvironmentProblem, match=r"such as http://host:8088"):
        env.spark_master_web("yarn")
    variables.setenv("HEADGATE_SPARK_MASTER_WEB", "http://a:8088/,http://b:8088")
    assert env.spark_master_web("yarn") == ["http://a:8088", "http://b:8088"]
    with pytest.raises(env.EnvironmentProblem, match="HADOOP_CONF_DIR is not set"):
        env.hadoop_conf_dir("yarn")
    variables.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(env.EnvironmentProblem, match=f"HADOOP_CONF_DIR is {tmp_path}"):
        env.hadoop_conf_dir("yarn")
    assert env.hadoop_conf_dir("local") == env.hadoop_conf_dir("spark://s:7077") == ""
    (tmp_path / "yarn-site.xml").touch()
    assert env.hadoop_conf_dir("yarn") == str(tmp_path)


def test_on_yarn_drivers_run_in_the_cluster_only_and_spark_makes_the_secret(variables: pytest.MonkeyPatch) -> None:
    assert (env.deploy_mode("yarn"), env.spark_secret("yarn")) == ("cluster", "")
    variables.setenv("HEADGATE_SPARK_DEPLOY_MODE", "client")
    with pytest.raises(env.EnvironmentProblem, match="in cluster mode only"):
        env.deploy_mode("yarn")


def test_containers_do_not_reach_loopback(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("HEADGATE_INTERNAL_URL", "http://127.0.0.1:8000")
    variables.setenv("HEADGATE_SPARK_MASTER_WEB", "http://rm.example:8088")
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_INTERNAL_URL is"):
        env.internal_url("yarn")
    variables.setenv("HEADGATE_SPARK_MASTER_WEB", "http://localhost:8088")
    assert env.internal_url("yarn") == "http://127.0.0.1:8000"
