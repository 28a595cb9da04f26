"""How an application is submitted: Spark's configuration by what the task asks for, and by what the operator has set.

Cores and memory follow from the spec. What the operator's ``spark-defaults.conf`` sets wins, but for the few properties
without which an indexer would not do its work.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings

from controlplane.spark import kubernetes, shipping, yarn
from ingestion.specs.tasks.batch import parse_batch_spec
from ingestion.specs.tasks.ingestion_spec import parse_task_spec

MEBI = 1024 * 1024
_JVM_MB = 256
_LIBRARIES_MB = 192  # of an indexer's Python process, before it has read anything
_CONSUMER_MB = 16  # fetched ahead, and in its hands
_DECODER_FACTOR = 4  # times maxBytesInMemory, beside the rows: see ingestion.task.decoding
_CHUNKS_MB = 384  # of a batch task, on their way from those that read to those that write
_MERGE_MB = 1024  # what a merge sorts in memory, and what it reads and writes beside it: see ingestion.compaction
# A batch task's chunks are compressed before Spark has them; what a Spark task has read fits into so much.
_COMPRESSED_CHUNKS = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": "64m",
}
SECRET = "HEADGATE_SPARK_SECRET"  # noqa: S105 - the variable's name


class SubmittableTask(Protocol):
    """What of a task decides how its application is submitted."""

    @property
    def pk(self) -> Any: ...

    @property
    def is_batch(self) -> bool: ...

    @property
    def spec(self) -> Any: ...

    @property
    def as_batch(self) -> dict[str, Any]: ...

    @property
    def slots(self) -> int: ...

    @property
    def indexers_wanted(self) -> int: ...


def submit_conf(task: SubmittableTask) -> dict[str, str]:
    """The properties to give to ``spark-submit``. Raises ``OSError`` when the executors' Python can't be packed."""
    overrides = operator_conf()
    defaults = _default_conf({} if is_local() else _streaming_size(task, overrides)) | (
        _COMPRESSED_CHUNKS if task.is_batch else {}
    )
    preferred = {name: value for name, value in defaults.items() if name not in overrides}
    return {**preferred, **_required(task.pk, _failures(task), reuse=task.is_batch), **_file_conf(task.pk, overrides)}


def _failures(task: SubmittableTask) -> int:
    """How often Spark may try one of its tasks. An indexer's driver starts it again by itself."""
    return 1 + parse_batch_spec(task.as_batch).spec.tuningConfig.maxRetry if task.is_batch else 1


def resident_conf(name: str, slots: int) -> dict[str, str]:
    """What ``spark-submit`` is given for an application of so many slots that serves all. Raises ``OSError``."""
    overrides = operator_conf()
    defaults = _default_conf({} if is_local() else _size_of_resident(slots, overrides))
    return {
        **{name: value for name, value in defaults.items() if name not in overrides},
        **_required(name),
        **_file_conf(name, overrides),
    }


def environment() -> dict[str, str]:
    """What the driver is told besides, and nobody else may read."""
    if is_local():
        return {}
    if drivers_on_cluster():
        return _environment_on_cluster()
    python = {"PYSPARK_PYTHON": shipping.ship_python().python} if ships_python() else {}
    return {**python, SECRET: settings.SPARK_SECRET} if settings.SPARK_SECRET else python


def _environment_on_cluster() -> dict[str, str]:
    """A driver there calls Python as its executors do. Spark's own variable for the secret is for who submits it, too:
    a Spark worker gives it to all drivers."""
    python = sys.executable
    if ships_python():
        python = shipping.ship_python().python if on_yarn() else f"./{shipping.ship_driver()}"
    secret = {"_SPARK_AUTH_SECRET": settings.SPARK_SECRET} if settings.SPARK_SECRET else {}
    return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, **secret}


def driver_file() -> str:
    """The address of the file that a driver on the cluster is submitted with. Raises ``OSError``.

    It holds its Python; where that is installed, it is a small library of Spark's: there must be one.
    """
    if ships_python():
        return f"{settings.SPARK_SHIPPED_URL}/{shipping.ship_driver()}"
    return f"file:{next(Path(spark_home()).glob('jars/spark-tags_*.jar'))}"


def prepare_shipping() -> None:
    """Do beforehand what takes its time once for each version. Raises ``OSError``."""
    if ships_python():
        shipping.ship_python()
        if drivers_on_cluster() and not on_yarn():
            shipping.ship_driver()


def is_local() -> bool:
    """Whether each application is a process of its own on this machine, without a cluster."""
    return bool(settings.SPARK_MASTER == "local")


def on_yarn() -> bool:
    """Whether the cluster is YARN's. Then drivers run there, too."""
    return bool(settings.SPARK_MASTER == yarn.MASTER)


def on_kubernetes() -> bool:
    """Whether drivers and executors are pods."""
    return bool(settings.SPARK_MASTER.startswith(kubernetes.MASTER))


def kubernetes_api() -> kubernetes.Api:
    """Where their pods are asked for."""
    return kubernetes.Api.of(operator_conf())


def drivers_on_cluster() -> bool:
    """Whether drivers, too, run on the cluster."""
    return bool(settings.SPARK_DEPLOY_MODE == "cluster")


def ships_python() -> bool:
    """Whether executors are sent their Python: not where they are started on this machine, or have it installed, as in
    an image."""
    return not is_local() and not on_kubernetes() and settings.SPARK_PYTHON == "shipped"


def _required(name: str, failures: int = 1, *, reuse: bool = False) -> dict[str, str]:
    """``reuse``: of the executors' Python processes, for many short Spark tasks. An indexer's ends with it."""
    return {
        "spark.app.name": name,
        "spark.speculation": "false",
        "spark.python.worker.reuse": str(reuse).lower(),
        "spark.task.maxFailures": str(failures),
        "spark.task.cpus": "1",
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": "ingestion.spark.daemon",
        **_authentication(),
    }


def _authentication() -> dict[str, str]:
    """Nobody speaks to the application's parts who does not know its secret; locally, on YARN and on Kubernetes Spark
    makes it.

    What a local one writes to disk stays on this machine, where its segments lie readable: to encrypt it cost a batch
    task a tenth of its processor time and protected nothing.
    """
    if settings.SPARK_MASTER.startswith("spark://") and not settings.SPARK_SECRET:
        return {}
    return {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": str(not is_local()).lower(),
    }


def _file_conf(name: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """The operator's, and what executors get of Python; with a driver there it comes in the driver's file.

    YARN hands files to the driver as well, and gives executors no environment of their machine.
    """
    if on_kubernetes():
        return kubernetes.conf(name, overrides)
    if on_yarn():
        return yarn.conf(overrides) | _files_on_yarn(overrides)
    if not ships_python() or drivers_on_cluster():
        return {}
    theirs = [overrides["spark.files"]] if overrides.get("spark.files") else []
    return {"spark.files": ",".join([*theirs, *map(str, shipping.ship_python().files)])}


def _files_on_yarn(overrides: Mapping[str, str]) -> dict[str, str]:
    if not ships_python():
        return {"spark.executorEnv.PYTHONPATH": str(settings.BASE_DIR)}
    names = ("spark.files", "spark.yarn.dist.files")
    theirs = [overrides[name] for name in names if overrides.get(name)]
    return {names[1]: ",".join([*theirs, *map(str, shipping.ship_python().files)])}


def _default_conf(size: Mapping[str, str]) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.liveUpdate.period": "0",  # what Spark says of its jobs would else be up to 10 s old
        "spark.eventLog.enabled": "false",
        "spark.log.level": "WARN",
        "spark.driver.memory": "512m",
        **size,
    }


def _streaming_size(task: SubmittableTask, overrides: Mapping[str, str]) -> dict[str, str]:
    """A core for each indexer, in an executor of its own unless the operator says how many it has.

    Executors come and go with the indexers, whose number may change while the task runs.
    """
    cores = int(overrides.get("spark.executor.cores", "1"))
    if task.is_batch:
        return _size_of_batch(task, cores)
    conf = {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{memory_mb(task.spec, cores)}m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    if overrides.get("spark.dynamicAllocation.enabled") == "false":
        return {**conf, **_room(_most_indexers(task), cores)}
    return {
        **conf,
        "spark.cores.max": str(max(task.slots, cores)),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "30s",
        "spark.dynamicAllocation.initialExecutors": str(_executors(task.indexers_wanted, cores)),
        "spark.dynamicAllocation.maxExecutors": str(_executors(task.slots, cores)),
    }


def _size_of_batch(task: SubmittableTask, cores: int) -> dict[str, str]:
    """A core for each Spark task that runs beside others."""
    rows_mb = -(-parse_batch_spec(task.as_batch).spec.tuningConfig.maxBytesInMemory // MEBI)
    memory_mb = _JVM_MB + cores * (_LIBRARIES_MB + (1 + _DECODER_FACTOR) * rows_mb + _CHUNKS_MB)
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{memory_mb}m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        **_room(task.slots, cores),
    }


def _size_of_resident(slots: int, overrides: Mapping[str, str]) -> dict[str, str]:
    """An executor for each job."""
    cores = int(overrides.get("spark.executor.cores", "1"))
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{_JVM_MB + cores * (_LIBRARIES_MB + _MERGE_MB)}m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        **_room(slots, cores),
    }


def _room(slots: int, cores: int) -> dict[str, str]:
    """For so many slots, in executors of so many cores, all at once."""
    if on_yarn() or on_kubernetes():
        return {"spark.executor.instances": str(_executors(slots, cores))}
    return {"spark.cores.max": str(max(slots, cores))}


def _executors(indexers: int, cores: int) -> int:
    return -(-indexers // cores)


def _most_indexers(task: SubmittableTask) -> int:
    scaler = parse_task_spec(task.spec).spec.ioConfig.auto_scaler
    return max(task.indexers_wanted, scaler.bounds[1] if scaler else 0)


def memory_mb(spec: Mapping[str, Any], indexers: int) -> int:
    """What an executor of so many indexers needs, its Python processes included: a worker counts nothing else."""
    parsed = parse_task_spec(spec).spec
    rows_mb = -(-parsed.tuningConfig.maxBytesInMemory // MEBI)
    consumers = parsed.ioConfig.consumers
    return _JVM_MB + indexers * (_LIBRARIES_MB + (1 + _DECODER_FACTOR) * rows_mb + _CONSUMER_MB * consumers)


def operator_conf() -> dict[str, str]:
    """What the operator's ``spark-defaults.conf`` sets; nothing where there is none."""
    return read_properties(operator_text())


def operator_text() -> str:
    """The whole file; empty where there is none."""
    try:
        return operator_file().read_text()
    except OSError:
        return ""


def operator_file() -> Path:
    """Where ``operator_conf`` would be read."""
    return _conf_folder() / "spark-defaults.conf"


def _conf_folder() -> Path:
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder)
    return Path(spark_home()) / "conf"


def spark_home() -> str:
    """Where Spark is installed here."""
    return os.environ.get("SPARK_HOME") or _pyspark_folder()


@cache
def _pyspark_folder() -> str:
    pyspark = importlib.util.find_spec("pyspark")
    return str(Path(pyspark.origin).parent) if pyspark and pyspark.origin else "."


_PROPERTY = re.compile(r"^\s*([^\s#!=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*$")


def read_properties(text: str) -> dict[str, str]:
    """Name → value of a file of Java properties, as Spark writes them: a line each."""
    return {match[1]: match[2] for line in text.splitlines() if (match := _PROPERTY.match(line))}
