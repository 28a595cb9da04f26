"""What the master of a Spark cluster says, and whether a task would get on if another one ended."""

from __future__ import annotations

import pytest

from controlplane.spark.cluster_state import Application, Cluster
from controlplane.spark.spark_master import read_cluster

MINE = Application("mine", 0, True, 2000, 800)
OLD = Application("old", 2, False, 500, 800)
OTHER = Application("other", 0, True, 1000, 800)

TABLE: dict[str, tuple[list[Application], bool]] = {
    "the one before it has cores": ([MINE, OLD], True),
    "the one before it waits too": ([MINE, Application("old", 0, True, 500, 800)], False),
    "another one came first": ([MINE, OLD, OTHER], False),
    "another one came first, and fits on no worker": ([MINE, OLD, Application("other", 0, True, 1000, 5000)], True),
    "another one came later": ([MINE, OLD, Application("other", 0, True, 3000, 800)], True),
    "the master does not know it yet": ([OLD], False),
}


@pytest.mark.parametrize("case", TABLE)
def test_who_gets_on(case: str) -> None:
    applications, expected = TABLE[case]
    assert Cluster(2, 2, 2048, applications).would_get_cores("mine", ["old"]) is expected


def test_workers_that_are_gone_do_not_count() -> None:
    worker = {"cores": 4, "coresused": 3, "memory": 2048}
    app = {"name": "t", "cores": 3, "state": "RUNNING", "starttime": 1, "memoryperexecutor": 800}
    said = {"workers": [{**worker, "state": "ALIVE"}, {**worker, "state": "DEAD"}], "activeapps": [app]}
    seen = read_cluster(said)
    assert (seen.cores, seen.used, seen.free) == (4, 3, 1)
    assert seen.applications == [Application("t", 3, False, 1, 800)]
