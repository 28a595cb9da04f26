"""A driver on a Spark cluster: a Spark worker has started its JVM in a folder of its own, and that this process."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
import time
from pathlib import Path

from pyspark import SparkConf

_PERIOD_S = 1.0


def live_on_cluster() -> None:
    """Log beside the JVM, keep files in the driver's folder, and end when the JVM has. Does nothing elsewhere.

    Spark kills the JVM alone: without it no indexer can be started again, and a driver that goes on says that it lives.
    """
    if os.environ.pop("HEADGATE_ON_CLUSTER", "") != "1":
        return
    log = os.open(_log(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    os.environ["HEADGATE_SCRATCH"] = str(Path("scratch").absolute())
    atexit.register(_remove_files)
    threading.Thread(target=_follow, args=(os.getppid(),), name="parent", daemon=True).start()


def _log() -> Path:
    """Where the Spark worker's page, or YARN's, reads it: that of the JVM."""
    folders = [Path(name) for name in os.environ.get("LOG_DIRS", "").split(",") if name]
    return next((folder / "stderr" for folder in folders if (folder / "stderr").exists()), Path("stderr"))


def executors_files(conf: SparkConf) -> SparkConf:
    """Executors get the driver's file from the driver, whatever becomes of the place where its Spark worker got it."""
    addresses = [a for a in (conf.get("spark.jars", "") or "").split(",") if a]
    own = [str(Path(name).absolute()) if Path(name := a.rpartition("/")[2]).is_file() else a for a in addresses]
    return conf.set("spark.jars", ",".join(own)) if own != addresses else conf


def all_masters(conf: SparkConf) -> SparkConf:
    """The driver knows every master: it was submitted to those that answered then."""
    masters = os.environ.pop("HEADGATE_SPARK_MASTERS", "")
    return conf.setMaster(masters) if masters else conf


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PERIOD_S)
    _remove_files()
    os._exit(1)


def _remove_files() -> None:
    """What was unpacked here is large, and a Spark worker keeps the folder for days, for the log's sake."""
    for path in (Path("scratch"), *Path.cwd().glob("headgate-*")):
        if path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
