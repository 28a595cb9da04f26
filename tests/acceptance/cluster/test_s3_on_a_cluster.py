"""S3 as deep storage and a Spark cluster: its machines and its master are lost, S3 is away, Python does not start."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.reader import read_segment
from tests.support.batch_files import in_parquet
from tests.support.forwarder import Forwarder
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.s3 import BUCKET, CREDENTIALS, S3Server, s3_server
from tests.support.spark_cluster import LARGE, SparkCluster
from tests.support.waiting import wait_for

OPEN = ("waiting", "running")  # states of a merge that is under way
DAY_MS = 86_400_000
START_MS = 1_735_689_600_000  # 2025-01-01
PAGES = ["main", "öther", 'in "quotes"', None]
CONFIG = "/druid/coordinator/v1/config/compaction"
_USED = """
    SELECT s.path, s.version FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""
_JOBS = """
    SELECT j.state, j.attempt, j.error, j.rows_before, j.rows_after, cardinality(j.inputs), j.segments_after
    FROM compaction_job j JOIN datasources_datasource d ON d.id = j.datasource_id WHERE d.name = %s
"""


@dataclass
class Site:
    """The house with both. ``way``: what its machines reach S3 by."""

    house: House
    cluster: SparkCluster
    server: S3Server
    way: Forwarder

    def come_back(self) -> None:
        """S3 is reached again, at the address where it was."""
        self.way = Forwarder(self.server.address, int(self.way.address.rpartition(":")[2]))


@pytest.fixture(scope="module")
def site(house: House, cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    cluster.resize(*LARGE)
    with (
        pytest.MonkeyPatch.context() as patched,
        s3_server(tmp_path_factory.mktemp("s3")) as server,
        cluster.code_installed(),
    ):
        for name, value in CREDENTIALS.items():
            patched.setenv(name, value)
        way = Forwarder(server.address)
        options = f"?endpoint_override=http://{way.address}&region=us-east-1"
        settings = {
            "HEADGATE_DEEP_STORAGE": f"s3://{BUCKET}/deep{options}",
            "HEADGATE_INPUT_LOCATIONS": f"s3://{BUCKET}/input{options}",
            "HEADGATE_SPARK_PYTHON": "installed",  # to unpack it took each application longer than its work
            **CREDENTIALS,
        }
        with house.set_up_with(**cluster.settings, **settings):
            made = Site(house, cluster, server, way)
            yield made
            made.way.close()


def a_table(seed: int, rows: int) -> pd.DataFrame:
    """Three days of them; ``n`` is another one in each."""
    dice = random.Random(seed)
    times = [START_MS + dice.randrange(3 * DAY_MS) for _ in range(rows)]
    pages = [dice.choice(PAGES) for _ in range(rows)]
    return pd.DataFrame({"t": times, "page": pages, "n": range(seed * rows, (seed + 1) * rows)})


def batch(datasource: str, source: dict[str, Any], form: str = "", slots: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t" if form else "__time", "format": "millis"},
                "dimensionsSpec": {"dimensions": ["page", {"name": "n", "type": "long"}]},
                "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": source,
                **({"inputFormat": {"type": form}} if form else {}),
                **changes,
            },
            "tuningConfig": {
                "type": "index_parallel",
                "maxNumConcurrentSubTasks": slots,
                "maxRowsPerSegment": 4_000,
                "maxBytesInMemory": 64_000_000,
            },
        },
    }


def stored(site: Site, datasource: str) -> pd.DataFrame:
    """What is in use now, as it was written."""
    storage = open_deep_storage(site.house.environment["HEADGATE_DEEP_STORAGE"])
    found = pd.concat(read_segment(storage, path).to_pandas() for path, _ in site.house.sql(_USED, datasource))
    return found.assign(t=found["__time"].dt.as_unit("ms").astype("int64"))[["t", "page", "n"]]


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    one, other = (
        rows.astype({"page": "object"}).fillna({"page": ""}).sort_values("n").reset_index(drop=True)
        for rows in (one, other)
    )
    return len(one) == len(other) and bool((one == other).all(axis=None))


def said(site: Site, datasource: str) -> str:
    logs = [p.read_text(errors="replace")[-3000:] for p in site.house.home.tasks.glob("compaction_*/spark.log")]
    return f"{site.house.sql(_JOBS, datasource)} {logs} {site.house.logs(datasource)} {site.cluster.logs()}"


def of_state(site: Site, datasource: str, state: str) -> list[tuple[Any, ...]]:
    """Its merges that have come to this."""
    return [job for job in site.house.sql(_JOBS, datasource) if job[0] == state]


def at_rest(site: Site, topic: str) -> None:
    """No merge is under way, and none begins: segments can be counted."""
    site.house.api("DELETE", f"{CONFIG}/{topic}", expect=200)
    wait_for("no merge is open", lambda: not any(of_state(site, topic, state) for state in OPEN), 120)


@pytest.mark.timeout(900)
def test_what_is_merged_read_and_overwritten_survives_the_loss_of_machines(site: Site, tmp_path: Path) -> None:
    """Row 36 of the failure matrix: the machine of a merge whose files are written, then that of a task that overwrites
    an interval, with some of its files written. Spark's cluster, since Spark runs a lost machine's work anew.
    """
    house, cluster = site.house, site.cluster
    topic, name = house.topic(), f"pages-{tmp_path.name[-8:].replace('_', '-')}"
    merging, overwriting = tmp_path / "merging", tmp_path / "overwriting"
    house.fail_at(f"{topic}/compaction", written=f"once:{merging}:hold")
    house.supervise(house.kafka_spec(topic, taskCount=1))
    house.api("POST", CONFIG, {"dataSource": topic, "taskPriority": 30}, expect=200)
    stream = Endless(house, topic)

    rows = a_table(7, 18_000)
    site.server.ask("PUT", f"/{BUCKET}/input/{name}.file", in_parquet(rows))
    task = house.submit(batch(name, {"type": "s3", "uris": [f"s3://{BUCKET}/input/{name}.file"]}, "parquet"))
    wait_for("a merge has written its files", merging.exists, 180, lambda: said(site, topic))
    cluster.lose(cluster.host_of(int(merging.read_text())))
    house.ended(task, seconds=180)
    assert same(stored(site, name), rows)

    house.fail_at(f"{name}/batch", bin_written=f"once:{overwriting}:hold")
    versions = {version for _, version in house.sql(_USED, name)}
    again = {"type": "druid", "dataSource": name, "interval": "2025-01-01/2025-01-04"}
    task = house.submit(batch(name, again, slots=2))
    wait_for("some of its files are written", overwriting.exists, 120, lambda: said(site, name))
    cluster.lose(cluster.host_of(int(overwriting.read_text())))
    house.ended(task, seconds=180)
    assert same(stored(site, name), rows)
    after = {version for _, version in house.sql(_USED, name)}
    assert len(after) == 1 and not after & versions

    wait_for("a merge is done", lambda: of_state(site, topic, "done"), 120, lambda: said(site, topic))
    records = stream.finish()
    published(house, topic, records)
    at_rest(site, topic)
    done = of_state(site, topic, "done")
    assert all(before == left and made < read for *_, before, left, read, made in done), done
    check_exactly_once(house, topic, range(records))


@pytest.mark.timeout(900)
def test_a_replace_that_deep_storage_refuses_in_the_middle_changes_nothing(site: Site, tmp_path: Path) -> None:
    """Row 36 of the failure matrix: S3 goes away when some of a task's files are written, and while a merge reads.

    Spark's cluster, since its executors reach S3 by themselves and Spark tries a failed part again.
    """
    house = site.house
    topic, name = house.topic(), f"away-{tmp_path.name[-8:].replace('_', '-')}"
    rows = a_table(7, 6_000)
    site.server.ask("PUT", f"/{BUCKET}/input/{name}.file", in_parquet(rows))
    source = {"type": "s3", "uris": [f"s3://{BUCKET}/input/{name}.file"]}
    taken, written = tmp_path / "taken", tmp_path / "written"
    house.fail_at(f"{topic}/compaction", taken=f"pause:{taken}")
    house.fail_at(f"{name}/batch", bin_written=f"pause:{written}")
    house.supervise(house.kafka_spec(topic, taskCount=1))
    house.api("POST", CONFIG, {"dataSource": topic, "taskPriority": 30}, expect=200)
    stream = Endless(house, topic)
    task = house.submit(batch(name, source, "parquet"))
    for file, of in ((taken, topic), (written, name)):
        wait_for(f"{of} is in the middle", file.exists, 180, lambda of=of: said(site, of))
    site.way.close()
    house.fail_at(f"{topic}/compaction")
    taken.unlink()
    written.unlink()
    house.ended(task, "FAILED", seconds=120)
    failed = wait_for("the merge has failed", lambda: of_state(site, topic, "failed"), 120, lambda: said(site, topic))
    site.come_back()
    house.fail_at(f"{name}/batch")
    assert house.sql(_USED, name) == []
    assert "can't store" in house.api("GET", f"/api/v1/tasks/{task}/")["error"]
    assert "can't" in failed[0][2]
    house.ended(house.submit(batch(name, source, "parquet")))
    assert same(stored(site, name), rows)

    def done() -> list[tuple[Any, ...]]:
        taken.unlink(missing_ok=True)  # of a second one that was handed out by then
        return of_state(site, topic, "done")

    wait_for("a merge is done", done, 180, lambda: said(site, topic))
    records = stream.finish()
    published(house, topic, records)
    at_rest(site, topic)
    check_exactly_once(house, topic, range(records))


@pytest.mark.timeout(900)
def test_a_master_that_is_restarted_has_forgotten_a_task(site: Site) -> None:
    """Row 38 of the failure matrix: its driver lives on without executors, and another task takes its place.

    Spark's cluster, since its master is restarted.
    """
    house = site.house
    topic = house.topic()
    house.supervise(house.kafka_spec(topic, taskCount=1, period="PT2S"))
    stream = Endless(house, topic)
    published(house, topic, 100, 240)
    first = house.running_task(topic)
    site.cluster.restart_master()
    house.ended(first, "FAILED", 120)
    assert "no longer lists its application" in house.api("GET", f"/api/v1/tasks/{first}/")["error"]
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))


@pytest.mark.timeout(900)
def test_executors_that_cannot_start_python_fail_the_task(site: Site) -> None:
    """Told that the workers have the code installed, which they have not. Spark starts Python on the executors."""
    house = site.house
    topic = house.topic()
    with site.cluster.code_missing():
        task = house.submit(house.spec(topic, idleConfig={"enabled": False}))
        wait_for("the task has failed", lambda: house.status(task) == "FAILED", 240, lambda: house.logs(topic))
        [(error,)] = house.sql("SELECT error FROM tasks_task WHERE id = %s", task)
    assert "could be started in 5 attempts" in error
    assert "No module named 'ingestion'" in error
