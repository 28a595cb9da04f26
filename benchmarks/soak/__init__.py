"""Everything at once, for as long as you like: records, faults by chance of a seed, and then every single id counted.

A supervisor of each kind reads a topic of its own, while indexers, applications and services are killed, stopped and
put to sleep, specs changed, supervisors scaled and suspended. At the end all settles, and each record that stands in
the log must be where it belongs exactly once.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.soak.faults import Faults
from benchmarks.soak.hosts import Hosts
from benchmarks.soak.lanes import PARTITIONS, Lane, open_lanes, published
from benchmarks.soak.merging import LEASE, Merging
from benchmarks.soak.producers import Producing
from benchmarks.soak.rewinding import Rewinding
from benchmarks.soak.storm import storm
from benchmarks.soak.verdict import Verdict, judge, read_log, settled
from controlplane.embedded.home import Home, temporary_home
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.kills import survive_kills
from tests.support.waiting import wait_for
from tests.support.workers import Workers

LAST_RECORDS = 300


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long, how hard, and from which seed."""
    parser.add_argument("--minutes", type=float, default=2.0, help="of faults (%(default)g)")
    parser.add_argument("--seed", type=int, help="of what happens when; printed when it is not given")
    parser.add_argument("--rate", type=int, default=200, help="records a second to each topic (%(default)s)")
    parser.add_argument("--gap", type=float, default=5.0, help="seconds between two faults, about (%(default)g)")
    parser.add_argument("--storm", type=float, default=30.0, help="seconds of rebalances before them (%(default)g)")
    parser.add_argument("--kills", type=int, default=0, help="of a share group's indexers at named places, before all")
    parser.add_argument(
        "--compaction", action="store_true", help="also kill merges, take what they read out of use, delete and replay"
    )
    parser.add_argument(
        "--hosts", action="store_true", help="also three hosts, killed whole or by process; none may be silent for 60 s"
    )
    parser.add_argument("--spares", type=int, default=0, help="applications of each host that wait for a task")
    parser.add_argument("--rewind", action="store_true", help="also begin and undo rewinds, and kill their readers")
    parser.add_argument("--settle", type=float, default=300.0, help="seconds for all to settle (%(default)g)")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep all logs there when something is wrong")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    seed = random.randrange(10**6) if options.seed is None else options.seed
    if options.compaction:
        os.environ.update(LEASE)
    os.environ["HEADGATE_SPARE_APPLICATIONS"] = str(options.spares)
    print(f"seed {seed}, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
    with temporary_home() as home, kill_leftovers(home):
        house = House(home)
        try:
            killed = _kills(house, options.kills, random.Random(f"{seed} kills")) if options.kills else []
            with ExitStack() as stack:
                return {"seed": seed, **_soak(house, options, seed, killed, stack)}
        finally:
            house.close()


def _kills(house: House, kills: int, chance: random.Random) -> list[str]:
    """What is wrong after so many kills at the places between poll and acknowledgement."""
    worker_groups: list[Workers] = []

    def make_workers(spec: dict[str, Any], indexers: int) -> Workers:
        worker_groups.append(Workers(house, spec, indexers))
        return worker_groups[-1]

    try:
        datasource, records, places = survive_kills(house, make_workers, chance, kills)
        check_exactly_once(house, datasource, range(records))
        print(f"{records} records, each once, after kills at {dict(places)}", flush=True)
        return []
    except AssertionError as problem:
        return [f"kills: {str(problem)[:4_000]}"]
    finally:
        for workers in worker_groups:
            workers.close()


def _soak(
    house: House, options: argparse.Namespace, seed: int, problems: list[str], stack: ExitStack
) -> dict[str, Any]:
    chance = random.Random(seed)
    lanes = open_lanes(house)
    faults = Faults(house, lanes, chance, echo=lambda line: print(line, flush=True))
    merging = Merging(house, faults, lanes, chance) if options.compaction else None
    rewinding = Rewinding(house, faults, lanes, chance) if options.rewind else None
    hosts = Hosts(house, faults, lanes, chance) if options.hosts else None
    if hosts:
        stack.callback(hosts.close)
        hosts.open()
        faults.also += hosts.kinds()
    faults.also += [*(merging.kinds() if merging else []), *(rewinding.kinds() if rewinding else [])]
    streams = {lane.kind: Producing(house.bootstrap, lane.topic, options.rate, str(seed)) for lane in lanes}
    waiting = Waiting(house, options.settle)
    waiting.for_each(lanes, "publishes", lambda lane: published(house, lane))
    faults.note("all kinds publish")
    if hosts:
        hosts.begin()
    problems += storm(house, lanes[-1], options.storm, chance, faults.note) if options.storm else []
    faults.run(60 * options.minutes, options.gap)
    faults.undo_all()
    if rewinding:
        waiting.for_each(lanes, "has no part of a rewind that waits", rewinding.is_at_rest)
    waiting.for_each(lanes, "follows its last spec", lambda lane: _follows(house, lane))
    for lane in lanes:
        streams[lane.kind].finish()
        streams[lane.kind].send(LAST_RECORDS, f"{seed} last")
    if hosts:
        hosts.end()
    waiting.for_each(lanes, "has every column in a segment", lambda lane: set(lane.added()) <= _columns(house, lane))
    faults.note("no more records")
    logs = {lane.kind: read_log(house.bootstrap, lane.topic, PARTITIONS) for lane in lanes}
    waiting.for_each(
        lanes, "has settled", lambda lane: settled(house, lane, streams[lane.kind].ledger, logs[lane.kind])
    )
    faults.note("settled" if not waiting.timed_out else "given up")
    waiting.until("every task has ended", house.rest)
    if hosts:
        problems += hosts.wrong()
        hosts.close()
    problems += rewinding.end() if rewinding else []
    problems += merging.end() if merging else []
    skipped = _skipped_markers(house)
    for lane in lanes:
        if lane.topic in skipped:
            streams[lane.kind].ledger.acknowledged -= set(logs[lane.kind].aborted)
            faults.note(f"{lane.kind}: the broker skipped the end of a transaction that it had acknowledged")
    verdicts = {lane.kind: judge(house, lane, streams[lane.kind].ledger, logs[lane.kind]) for lane in lanes}
    problems += waiting.timed_out
    problems += [f"{kind}: {line}" for kind, verdict in verdicts.items() for line in verdict.faults]
    _print_problems(house, problems, seed, options)
    counts = (merging.jobs() if merging else {}) | (rewinding.parts() if rewinding else {})
    counts |= hosts.results() if hosts else {}
    return _results(verdicts, problems, faults, options) | counts


@dataclass
class Waiting:
    """Waits that may be in vain: what never came is a finding, and the rest is looked at all the same."""

    house: House
    seconds: float
    timed_out: list[str] = field(default_factory=list)

    def for_each(self, lanes: list[Lane], what: str, condition: Callable[[Lane], Any]) -> None:
        """Until every lane is so far; the time is that of them together."""
        end = time.monotonic() + self.seconds
        for lane in lanes:
            left = max(1.0, end - time.monotonic())
            self.until(f"{lane.kind} {what}", partial(wait_for, what, partial(condition, lane), left, self._tasks))

    def until(self, what: str, wait: Callable[[], Any]) -> None:
        """A wait that raises ``AssertionError`` when it is in vain."""
        try:
            wait()
        except AssertionError as problem:
            self.timed_out.append(f"in vain: {what}: {str(problem)[:4_000]}")

    def _tasks(self) -> list[tuple[Any, ...]]:
        """The active tasks and their indexers, as the control plane sees them."""
        return self.house.sql(
            "SELECT t.id, t.status, t.goal, t.spec_version, t.message, i.number, i.state, i.in_flight, i.message"
            " FROM tasks_task t LEFT JOIN tasks_indexer i ON i.task_id = t.id"
            " WHERE t.status IN ('PENDING', 'RUNNING') ORDER BY t.created_at, i.number"
        )


def _skipped_markers(house: House) -> str:
    """Where a broker that was paused lost its place in the cluster, and so the end of a committed transaction.

    It takes the partitions for deleted ones, as they have no leader for some milliseconds. The records count as aborted
    when the producer's next transaction is.
    """
    lines = house.home.log("kafka").read_text(errors="replace").splitlines()
    return "\n".join(line for line in lines if "while trying to send transaction markers" in line)


def _follows(house: House, lane: Lane) -> bool:
    """Whether the supervisor's newest task reads by its newest spec, alone."""
    rows = house.sql(
        "SELECT t.spec->'spec'->'dataSchema'->'dimensionsSpec'->'dimensions',"
        " EXISTS (SELECT 1 FROM tasks_indexer i WHERE i.task_id = t.id AND i.state = 'reading')"
        " FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id"
        " WHERE d.name = %s AND t.kind NOT IN ('repair', 'rewind') AND t.status IN ('PENDING', 'RUNNING')",
        lane.datasource,
    )
    if len(rows) != 1 or not rows[0][1]:
        return False
    return set(lane.added()) <= {d if isinstance(d, str) else d["name"] for d in rows[0][0]}


def _columns(house: House, lane: Lane) -> set[str]:
    rows = house.sql(
        "SELECT DISTINCT c->>'name' FROM segments_segment s"
        " JOIN datasources_datasource d ON d.id = s.datasource_id JOIN segments_segmentschema k ON k.id = s.schema_id,"
        " jsonb_array_elements(k.columns) c WHERE d.name = %s",
        lane.datasource,
    )
    return {name for (name,) in rows}


def _print_problems(house: House, problems: list[str], seed: int, options: argparse.Namespace) -> None:
    """What is wrong, with the seed; and the logs to a folder, if one is given."""
    for problem in problems:
        print(f"WRONG (seed {seed}): {problem}", flush=True)
    if problems and options.logs:
        shutil.copytree(house.home.logs, options.logs / "services", dirs_exist_ok=True)
        for log in house.home.path.glob("tasks*/*/spark.log"):
            shutil.copy(log, options.logs / f"{log.parent.name}.log")
        print(f"the logs are in {options.logs}", flush=True)


def _results(
    verdicts: dict[str, Verdict], problems: list[str], faults: Faults, options: argparse.Namespace
) -> dict[str, Any]:
    results: dict[str, Any] = {"minutes": options.minutes, "events": len(faults.log)}
    for kind, verdict in verdicts.items():
        counts = ("stored", "quarantined", "thrown_away")
        results |= {f"{kind}_{name}": getattr(verdict, name) for name in counts}
        results |= {f"{kind}_{name}": verdict.totals.get(name) for name in ("duplicates", "redelivered", "released")}
        results[f"{kind}_alarms"] = ", ".join(f"{name} {times}" for name, times in sorted(verdict.alarms.items()))
    return {
        **results,
        "lost": sum(v.lost for v in verdicts.values()),
        "duplicated": sum(v.duplicated for v in verdicts.values()),
        "wrong": problems,
        "log": [str(entry) for entry in faults.log],
        "load": os.getloadavg()[1],
    }


@contextmanager
def kill_leftovers(home: Home) -> Iterator[None]:
    """However it ends, no process of this home goes on: those that sleep, and those that nobody waits for, too."""
    try:
        yield
    finally:
        end = time.monotonic() + 10
        while (left := list(_processes_of(home))) and time.monotonic() < end:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=2)


def _processes_of(home: Home) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            ours = environment.get("HEADGATE_SCRATCH") or environment.get("HEADGATE_TASK_DIR") or ""
            if process.pid != os.getpid() and ours.startswith(f"{home.path}/"):
                yield process
        except psutil.Error:
            continue
