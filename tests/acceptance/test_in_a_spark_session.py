"""What Spark itself makes of segments and of jobs without a core, in a session of one core in the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from pyspark.sql import SparkSession

from controlplane.compaction import planning
from controlplane.compaction.models import Job
from controlplane.tasks.models import Resident
from ingestion.spark import compactor
from ingestion.task.shutdown import Ending
from tests.integration.test_compaction_jobs import a_task, published
from tests.support.in_process import client_of_compaction
from tests.support.publishes import TASK, make_source
from tests.support.spark_session import spark_session
from tests.support.two_versions import WANTED, TwoVersions, shown, with_files_of_two_versions

NAME = "compaction_alone"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("session"), "local[1]") as session:
        yield session


def test_files_of_two_versions_are_read_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader over segments with and without ids of columns, as a manifest's line has it read them."""
    shelf = with_files_of_two_versions(TwoVersions(tmp_path / "shelf"))
    columns = spark.read.option("mergeSchema", "true").parquet(*shelf.paths[1:])
    rows = [row.asDict() for row in columns.collect()]
    assert shown(rows) == [row for row in WANTED if row["n"] % 10]


@pytest.mark.django_db
def test_an_application_whose_jobs_get_no_core_ends_and_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    """A compaction application. It leaves its jobs to the next one; what Spark says of a job without a core is what it
    goes by.
    """
    settings.AUTO_COMPACTION = True
    monkeypatch.setattr(compactor, "STALLED_S", 4.0)
    monkeypatch.setattr(compactor, "PROGRESS_CHECK_S", 1.0)
    source = make_source("flights")
    a_task(source, TASK)
    published(source, 20)
    planning.plan()
    held = str(tmp_path / "held")
    Path(held).touch()

    def hold(number: int) -> int:
        while Path(held).exists():
            time.sleep(0.1)
        return number

    cores = spark.sparkContext
    other = threading.Thread(target=lambda: cores.parallelize([0], 1).map(hold).collect())
    other.start()
    compactor.Compactor(cores, client_of_compaction(NAME), "http://testserver", NAME, "", Ending()).run()
    Path(held).unlink()
    other.join()
    error = "Spark has started none of its jobs for 4 s."
    assert Resident.objects.get(pk=NAME).error == error
    [job] = Job.objects.all()
    assert (job.state, job.application, job.error) == ("waiting", None, error)
