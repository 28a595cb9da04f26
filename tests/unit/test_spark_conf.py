"""How applications are submitted to Spark: their size, the operator's own settings, the secret, what executors get."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from pyspark import SparkConf

from controlplane.config import env
from controlplane.spark import cluster_drivers, shipping, spark_conf
from controlplane.tasks.models import Task
from ingestion.spark.on_cluster import all_masters
from tests.support.django_cast import spec_for

PROJECT = Path(__file__).resolve().parents[2]


def task(tuning: dict[str, Any] | None = None, **io_config: Any) -> Task:
    document = spec_for("sized", **io_config)
    document["tuningConfig"] = {**document.get("tuningConfig", {}), **(tuning or {})}
    return Task(pk="the-task", spec=document, indexers_wanted=io_config.get("taskCount", 1), slots=32)


@pytest.fixture
def on_cluster(settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cluster whose workers have Python installed; the folder of the operator's configuration, which is empty."""
    settings.SPARK_MASTER, settings.SPARK_SECRET, settings.SPARK_PYTHON = "spark://s:7077", "hush", "installed"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


def test_an_executor_has_room_for_what_its_indexer_may_need(on_cluster: Path) -> None:
    """The formula of docs/reference/spark.md: 256, and for each indexer 192 + 5 × maxBytesInMemory + 16 × consumers."""
    conf = spark_conf.submit_conf(task({"maxBytesInMemory": 100 * 1024 * 1024}, consumersPerIndexer=6, taskCount=3))
    assert conf["spark.executor.memory"] == f"{256 + 192 + 5 * 100 + 16 * 6}m"
    assert conf["spark.executor.cores"] == "1"
    assert conf["spark.dynamicAllocation.initialExecutors"] == "3"
    assert conf["spark.cores.max"] == conf["spark.dynamicAllocation.maxExecutors"] == "32"


def test_what_the_operator_has_set_wins(on_cluster: Path) -> None:
    own = "# ours\nspark.executor.cores 4\nspark.driver.memory=1g\nspark.eventLog.enabled : true\n"
    (on_cluster / "spark-defaults.conf").write_text(own + "spark.speculation true\n")
    conf = spark_conf.submit_conf(task(taskCount=6))
    assert not {"spark.executor.cores", "spark.driver.memory", "spark.eventLog.enabled"} & set(conf)
    assert conf["spark.executor.memory"] == f"{256 + 4 * (192 + 5 * 64 + 16 * 4)}m"
    assert conf["spark.dynamicAllocation.initialExecutors"] == "2"
    assert conf["spark.speculation"] == "false"  # two of one indexer at a time


def test_without_dynamic_allocation_it_holds_the_cores_that_it_may_come_to_need(on_cluster: Path) -> None:
    (on_cluster / "spark-defaults.conf").write_text("spark.dynamicAllocation.enabled false\n")
    scaler = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 5}
    for document, cores in ((task(taskCount=3), "3"), (task(taskCount=1, autoScalerConfig=scaler), "5")):
        conf = spark_conf.submit_conf(document)
        assert conf["spark.cores.max"] == cores
        assert not [name for name in conf if "dynamicAllocation" in name]


@pytest.mark.parametrize("master", ["local", "spark://s:7077"])
def test_spark_asks_for_a_secret_that_no_command_line_tells(
    on_cluster: Path, settings: LazySettings, master: str
) -> None:
    """Row 22 of the security checklist: on this machine Spark makes up one, elsewhere it is in the environment."""
    settings.SPARK_MASTER = master
    conf = spark_conf.submit_conf(task())
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert conf["spark.io.encryption.enabled"] == ("false" if master == "local" else "true")
    assert "hush" not in str(conf)
    assert spark_conf.environment() == ({} if master == "local" else {"HEADGATE_SPARK_SECRET": "hush"})


def test_an_open_cluster_is_left_to_its_operator(on_cluster: Path, settings: LazySettings) -> None:
    settings.SPARK_SECRET = ""
    assert not [name for name in spark_conf.submit_conf(task()) if "auth" in name or "crypt" in name]


def test_python_is_sent_beside_what_the_operator_sends(
    on_cluster: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (on_cluster / "spark-defaults.conf").write_text("spark.files /etc/krb5.keytab\n")
    settings.SPARK_PYTHON = "shipped"
    monkeypatch.setattr(
        shipping, "ship_python", lambda: shipping.ShippedPython((Path("/a/headgate-python"), Path("/a/b.packed")))
    )
    assert spark_conf.submit_conf(task())["spark.files"] == "/etc/krb5.keytab,/a/headgate-python,/a/b.packed"
    assert spark_conf.environment()["PYSPARK_PYTHON"] == "./headgate-python"


def test_a_driver_on_the_cluster_brings_its_python_in_one_file(
    on_cluster: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 22 of the security checklist: the secret is in no command line."""
    settings.SPARK_DEPLOY_MODE, settings.SPARK_PYTHON = "cluster", "shipped"
    settings.SPARK_SHIPPED_URL = "https://files.internal/spark"
    monkeypatch.setattr(shipping, "ship_driver", lambda: "headgate-1.jar")
    (on_cluster / "spark-defaults.conf").write_text("spark.authenticate.secret hush\n")
    conf = spark_conf.submit_conf(task())
    command = cluster_drivers.submit_command(conf, "ingestion.spark.index")
    assert "spark.files" not in conf
    assert command[-4:] == ["https://files.internal/spark/headgate-1.jar", "-m", "", "ingestion.spark.index"]
    assert command[command.index("--properties-file") + 1] == str(on_cluster / "spark-defaults.conf")
    assert "hush" not in str(command)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    environment = cluster_drivers.environment({"HEADGATE_TASK_ID": "t"}, "-Xint")
    assert {environment[name] for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")} == {"./headgate-1.jar"}
    assert environment["_SPARK_AUTH_SECRET"] == "hush"
    assert not {"AWS_SECRET_ACCESS_KEY", "HOME", "SPARK_LOCAL_IP", "PYTHONPATH"} & set(environment)


def test_a_driver_is_submitted_to_masters_that_answer_and_knows_all(
    on_cluster: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's submission fails when one of several takes no connection."""
    settings.SPARK_DEPLOY_MODE, settings.SPARK_PYTHON = "cluster", "installed"
    with socket.create_server(("127.0.0.1", 0)) as alive, socket.create_server(("127.0.0.1", 0)) as gone:
        up, down = (f"127.0.0.1:{server.getsockname()[1]}" for server in (alive, gone))
        gone.close()
        for masters, submitted_to in (
            (f"{down},{up}", up),
            (f"{up},{up}", f"{up},{up}"),
            (f"{down},{down}", f"{down},{down}"),  # Spark says why
            (down, down),
        ):
            settings.SPARK_MASTER = f"spark://{masters}"
            command = cluster_drivers.submit_command(spark_conf.submit_conf(task()), "ingestion.spark.index")
            assert command[command.index("--master") + 1] == f"spark://{submitted_to}"
            environment = cluster_drivers.environment({}, "")
            assert environment["HEADGATE_SPARK_MASTERS"] == f"spark://{masters}"
    monkeypatch.setenv("HEADGATE_SPARK_MASTERS", environment["HEADGATE_SPARK_MASTERS"])
    assert all_masters(SparkConf(loadDefaults=False)).get("spark.master") == f"spark://{down}"


def test_the_one_file_unpacks_itself_and_an_executors_shrinks(tmp_path: Path) -> None:
    """Run by a shell: the interpreter in the archive is a script that says how it was called."""
    source = tmp_path / "fake-python"
    source.write_text('#!/bin/sh\necho "$PYTHONHOME $*"\n')
    source.chmod(0o755)
    archive = tmp_path / "headgate-7.packed"
    shipping._pack({f"python/bin/{shipping._VERSION}": source}, archive)
    script = shipping._SH.replace("@DIGEST@", "7").replace("@PYTHON@", shipping._VERSION)
    alone = shipping._alone(script, archive.name).encode() + archive.read_bytes()
    for name, variables in (("driver", {}), ("executor", {"SPARK_EXECUTOR_DIRS": str(tmp_path / "dirs")})):
        folder = tmp_path / name
        folder.mkdir()
        (tmp_path / "dirs").mkdir(exist_ok=True)
        (file := folder / "headgate-7.jar").write_bytes(alone)
        file.chmod(0o755)
        for _ in range(2):
            said = subprocess.check_output([f"./{file.name}", "-m", "a b"], cwd=folder, env=variables, text=True)
            home = tmp_path / "dirs" if variables else folder
            assert said == f"{home}/headgate-7/python -m a b\n"
        assert (file.stat().st_size < len(alone)) == bool(variables)


def test_a_task_of_this_machine_has_nothing_of_a_cluster(on_cluster: Path, settings: LazySettings) -> None:
    settings.SPARK_MASTER, settings.SPARK_PYTHON = "local", "shipped"
    conf = spark_conf.submit_conf(task())
    assert not [
        name for name in conf if name.startswith(("spark.executor", "spark.dynamic", "spark.cores", "spark.files"))
    ]


def test_what_the_data_plane_imports_is_shipped() -> None:
    shipped = {d.metadata["Name"].lower() for d in shipping.with_dependencies(shipping.PACKAGES)}
    of_modules = importlib.metadata.packages_distributions()
    # Stores are opened by the control plane, and by the driver of the Spark connector.
    files = [file for file in (PROJECT / "ingestion").rglob("*.py") if file.name != "key_stores.py"]
    imported = {name for file in files for name in _imports(file)} - set(sys.stdlib_module_names)
    assert {"duckdb", "pyarrow", "confluent_kafka"} <= imported
    for module in imported - {"ingestion", "pyspark", "py4j"}:  # PySpark is the worker's
        assert {name.lower() for name in of_modules[module]} & shipped, module
    assert "googleapis-common-protos" in shipped  # a schema names its modules


def _imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(OSError, match="'no-such-package'"):
        shipping.with_dependencies(["no-such-package"])


# Settings


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"])
def test_executors_elsewhere_do_not_reach_loopback(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HEADGATE_INTERNAL_URL", url)
    with pytest.raises(env.EnvironmentProblem, match=re.escape(f"HEADGATE_INTERNAL_URL is {url}")):
        env.internal_url("spark://10.0.0.7:7077")
    assert env.internal_url("local") == env.internal_url("spark://127.0.0.2:7077,localhost:7078") == url
    monkeypatch.setenv("HEADGATE_INTERNAL_URL", "http://web:8000")
    assert env.internal_url("spark://10.0.0.7:7077") == "http://web:8000"


def test_a_cluster_without_a_secret_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_SPARK_SECRET", raising=False)
    assert env.spark_secret("local") == ""
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_ALLOW_OPEN_SPARK=1"):
        env.spark_secret("spark://s:7077")
    monkeypatch.setenv("HEADGATE_ALLOW_OPEN_SPARK", "1")
    assert env.spark_secret("spark://s:7077") == ""
    monkeypatch.setenv("HEADGATE_SPARK_SECRET", "hush")
    assert env.spark_secret("spark://s:7077") == "hush"


def test_drivers_run_on_a_cluster_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_SPARK_DEPLOY_MODE", raising=False)
    assert env.deploy_mode("local") == env.deploy_mode("spark://s:7077") == "client"
    monkeypatch.setenv("HEADGATE_SPARK_DEPLOY_MODE", "cluster")
    assert env.deploy_mode("spark://s:7077") == "cluster"
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_SPARK_MASTER is local"):
        env.deploy_mode("local")


def test_the_masters_pages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_SPARK_MASTER_WEB", raising=False)
    assert env.spark_master_web("spark://a:7077,b:7078") == ["http://a:8080", "http://b:8080"]
    assert env.spark_master_web("local") == []
    monkeypatch.setenv("HEADGATE_SPARK_MASTER_WEB", "http://c:1/")
    assert env.spark_master_web("spark://a:7077") == ["http://c:1"]
