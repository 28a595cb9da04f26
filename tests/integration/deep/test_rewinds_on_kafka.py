"""Rewinds by chance on a real broker: records, merges, kills, rewinds and undone ones end in the rows of a clean run.

Each run follows a seed. Readers, merges and the processes of rewinds speak HTTP to the control plane, read a topic and
write files. ``test_rewinds_by_chance`` tries more sequences, without Kafka and files.
"""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone

from controlplane.compaction import compact_tasks
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.selectors.fate import outcomes_at
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.rewind_rounds import run_rewinds
from controlplane.supervisors.rewinds import version_before
from controlplane.tasks import launcher
from controlplane.tasks.lifecycle import end_task, new_token, token_hash
from controlplane.tasks.models import Resident, Task
from controlplane.tasks.services import create_task
from ingestion.client.compaction import CompactionControlPlane
from ingestion.client.errors import PublishRefused
from ingestion.client.http import HttpControlPlane
from ingestion.compaction.merge_job import run as merge
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.reader import read_segment
from ingestion.sources.topic import TopicWatch, configure_group
from ingestion.spark.sources import AnySource, source_factory
from ingestion.specs import offsets
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.messages.compaction import CompactionJob, WorkRequest
from ingestion.specs.messages.protocol import PublishAnswer, PublishRequest
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.publishes import settled_offsets
from tests.support.segment_tasks import compact
from tests.support.stored_offsets import DRUID, post
from tests.support.three_specs import SPECS, data_schema, days_of, fate_of, record
from tests.support.waiting import wait_for

# Among them are all places of kills, moments of merges, deaths of publishes, and things that happen meanwhile.
SEEDS = (0, 1, 2, 3, 5, 6, 7, 10, 11)
STEPS = 4
PLACES = ("decoded", "uploaded", "committed")
COMPACTOR, TOKEN = "compaction_1", "a token of the compaction application"
Row = tuple[datetime, int, int]  # time, number of the record, and the spec that gave it


class Killed(BaseException):
    """The reader's process is no more."""


class Mortal(HttpControlPlane):
    """``dies``: where its process is killed, before or behind its first publish."""

    dies = ""

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        if self.dies == "before":
            raise Killed
        answer = super().publish(number, request)
        if self.dies:
            raise Killed
        return answer


@dataclass
class World:
    """What must be so, beside what is."""

    owner: Client
    broker: Broker
    url: str
    topic: str
    folder: Path
    lane: str
    chance: random.Random
    said: list[str] = field(default_factory=list)  # what was done, for whoever reads why it failed
    end: int = 0
    spec: int = 0  # the present one's
    versions: dict[int, int] = field(default_factory=dict)  # of the supervisor: which spec it is
    read_by: dict[int, int] = field(default_factory=dict)  # of each offset: the spec that holds
    before: dict[int, dict[int, int]] = field(default_factory=dict)  # of parts that are done: what had held

    @property
    def supervisor(self) -> Supervisor:
        return Supervisor.objects.get(pk=self.topic)

    @property
    def source(self) -> Source:
        return Source.objects.get(datasource__name=self.topic)

    def asks(self, where: str = "", **body: Any) -> Any:
        return post(self.owner, f"/api/v1/supervisors/{self.topic}/rewinds/{where}", body)

    def submit(self, spec: int, again: bool = False) -> None:
        if spec == self.spec and not again:
            return
        document = (self.broker.spec if self.lane == "share_group" else self.broker.kafka_spec)(self.topic)
        document["dataSchema"] |= data_schema(spec)
        answer = post(self.owner, DRUID, document)
        assert answer.status_code == 200, answer.content
        self.spec = self.versions[self.supervisor.version] = spec

    # Readers

    def publish(self, count: int, spec: int, dies: str = "") -> None:
        self.submit(spec)
        self.broker.produce(self.topic, map(record, range(self.end, self.end + count)))
        self.end += count
        if dies:
            with pytest.raises(Killed):
                self._read(dies)
        if dies != "behind":
            self._read()
        for offset in offsets.expanded(settled_offsets(self.source).get(0, [])):
            self.read_by.setdefault(offset, spec)

    def _read(self, dies: str = "") -> None:
        """A task of the supervisor reads until the end of the topic."""
        version = self.supervisor.current
        document = parse_supervisor_spec(version.spec).task_spec(1)
        task = create_task(
            datasource=self.supervisor.datasource,
            spec=document,
            supervisor_id=self.topic,
            spec_version=version.version,
            sealed=version.secrets,
        )
        Task.objects.filter(pk=task.pk).update(status="RUNNING", launched_at=timezone.now())
        client = Mortal(self.url, task.pk, new_token(task))
        client.dies = dies
        try:
            self._index(client)
        finally:
            client.close()
            end_task(task, error="Killed." if dies else "")

    def _index(self, client: Mortal) -> None:
        given, control = client.assignment(), Control(0, 1)
        io_config = given.spec.ioConfig
        if isinstance(io_config, ShareGroupIOConfig):
            configure_group({k: str(v) for k, v in given.consumer_properties.items()}, io_config, HERE)
        watch = TopicWatch(given.consumer_properties, self.topic, given.address_policy)
        scratch = self.folder / f"scratch-{given.task_id}"
        scratch.mkdir()
        make, todo = source_factory(given, 0, watch), {*range(self.end)} - {*self.read_by}

        def watched(claim: Any) -> AnySource:
            """It is told to finish when it has all."""
            source = make(claim)
            poll = source.poll

            def polled(timeout_s: float) -> Any:
                if (batch := poll(timeout_s)) is not None:
                    todo.difference_update(batch.offsets.tolist())
                if not todo:
                    control.update("finish")
                return batch

            source.poll = polled  # type: ignore[method-assign]
            return source

        storage = open_deep_storage(given.deep_storage)
        Indexer(
            given, control, IndexerDependencies(client, watch, watched, storage, scratch, socket.gethostname())
        ).run()

    # Merges

    def merges(self) -> list[CompactionJob]:
        """Those that a compact task asks for, begun."""
        task = post(self.owner, "/druid/indexer/v1/task", compact(dataSource=self.topic))
        assert task.status_code == 200, task.content
        compact_tasks.run()
        return self._compactor().work(WorkRequest(free=10)).jobs

    def finish(self, jobs: list[CompactionJob]) -> int:
        """How many replaced something: others may have been quicker."""
        done = 0
        for job in jobs:
            scratch = self.folder / f"{job.job_id}-{job.attempt}"
            scratch.mkdir()
            try:
                merge(job, self._compactor(), scratch)
                done += 1
            except PublishRefused:
                pass
        compact_tasks.run()
        for task in Task.objects.active().filter(kind=Task.Kind.COMPACT):
            end_task(task)
        return done

    def _compactor(self) -> CompactionControlPlane:
        return CompactionControlPlane(self.url, COMPACTOR, TOKEN)

    # Rewinds

    def rewind(self, asked: dict[str, Any], kill: str, merge_at: str, meanwhile: str, cancel: bool) -> None:
        jobs = self.merges() if merge_at else []
        answer = self.asks(**asked)
        self.said.append(f"{answer.status_code} {answer.json().get('detail', '')}")
        if answer.status_code != 200:
            assert answer.status_code == 409 and "there is nothing to read again" in answer.json()["detail"]
            self.finish(jobs)
            return
        rewind = Rewind.objects.get(pk=answer.json()["rewind"])
        assert sum(part["records"] for part in answer.json()["parts"]) == answer.json()["records"]
        if merge_at == "before":
            self.finish(jobs)
        self._kills(kill, rewind.pk)
        after = ""
        for _ in range(60):
            started = run_rewinds()
            if not started and not rewind.parts.filter(state="waiting").exists():
                break
            for task in started:
                self._process(task)
            if merge_at == "between":
                self.finish(jobs)
                jobs = []
            if meanwhile:
                assert post(self.owner, f"{DRUID}/{self.topic}/{meanwhile}").status_code == 200
                meanwhile, after = "", meanwhile
            if cancel and rewind.parts.filter(state="waiting").exists():
                assert self.asks("cancel/", rewind=rewind.pk).status_code == 200
        self._kills("")
        if after == "suspend":
            assert post(self.owner, f"{DRUID}/{self.topic}/resume").status_code == 200
        if after == "terminate":
            self.submit(self.spec, again=True)
        states = list(rewind.parts.order_by("number").values_list("state", "reason"))
        self.said.append(f"{states}")
        allowed = {"done", "cancelled"} if not rewind.dry_run else {"read", "cancelled"}
        wrong = [(state, why) for state, why in states if state not in allowed]
        assert all("None of its segments is in use" in why for _, why in wrong) and (merge_at or not wrong), wrong
        for part in rewind.parts.filter(state__in=("done", "read")).order_by("ended_at", "number"):
            self._note(part)

    def _note(self, part: RewindPart) -> None:
        by = {
            n: self.versions[reading["version"] or part.rewind.spec_version or 0]
            for reading in part.readings
            for _, start, end in reading["ranges"]
            for n in range(start, end)
        }
        assert part.rows_after == sum(len(days_of(spec, n)) for n, spec in by.items())
        if part.state == "done":
            self.before[part.pk] = {n: self.read_by[n] for n in by}
            self.read_by |= by

    def _kills(self, place: str, rewind: int = 0) -> None:
        """Whoever of its processes is there first."""
        killed = {place: f"once:{self.folder / f'killed-{rewind}'}:kill"} if place else {}
        Path(settings.FAILPOINTS_FILE).write_text(json.dumps({self.topic: killed}))

    def _process(self, pk: str) -> None:
        """Launch it, and wait for its end."""
        assert launcher.launch(pk)

        def is_over() -> bool:
            return Task.objects.get(pk=pk).ended or launcher.process_of(pk) is None

        wait_for(f"{pk} has ended", is_over, 60, lambda: launcher.log_of(pk).read_text())
        task = Task.objects.get(pk=pk)
        if not task.ended:  # as the watch does
            end_task(task, error="The application was lost.")
        self.said.append(f"{pk}: {Task.objects.get(pk=pk).error or 'done'}")

    def undo(self, rewind: int) -> None:
        answer = self.asks("undo/", rewind=rewind)
        self.said.append(f"{answer.status_code} {answer.json().get('detail', '')}")
        assert answer.status_code in (200, 409), answer.json()
        assert answer.status_code == 200 or "can't be undone" in answer.json()["detail"]
        undone = RewindPart.objects.filter(rewind=rewind, state="undone", pk__in=self.before).order_by("-ended_at")
        for part in undone:
            self.read_by |= self.before.pop(part.pk)

    # What holds

    def check(self) -> None:
        storage = open_deep_storage(settings.DEEP_STORAGE)
        used = list(Segment.objects.filter(datasource__name=self.topic, used=True))
        tables = [read_segment(storage, s.path) for s in used]
        found: Counter[Row] = Counter(
            (row["__time"], row["n"], row["spec"]) for table in tables for row in table.to_pylist()
        )
        clean = Counter(
            (day + timedelta(seconds=n), n, spec) for n, spec in self.read_by.items() for day in days_of(spec, n)
        )
        assert found == clean
        assert settled_offsets(self.source) == {0: [(0, self.end)]}
        assert set(self.read_by) == {*range(self.end)}
        fates = Counter(fate_of(spec, n) for n, spec in self.read_by.items())
        kept = QuarantinedRecord.objects.filter(source=self.source, state=QuarantinedRecord.State.KEPT)
        bad = [n for n, spec in sorted(self.read_by.items()) if fate_of(spec, n) == 1]
        assert sorted(kept.values_list("offset", flat=True)) == bad
        totals = datasource_totals(self.supervisor.datasource)
        assert totals.adds_up, totals
        assert (totals.polled, totals.published, totals.rolled_up) == (self.end, clean.total(), 0)
        assert (totals.thrown_away, totals.quarantined) == (fates[0], fates[1])
        names = {0: "thrown_away", 1: "unparseable"}
        for n, spec in self.read_by.items():
            assert names.get(fate_of(spec, n), "stored") in outcomes_at(self.source, 0, n)

    # Chance

    def step(self) -> None:
        pick, spec = self.chance.choice, self.chance.choice(SPECS)
        match pick(("publish", "merge", "rewind", "rewind", "rewind", "undo", "undo")):
            case "publish":
                count, dies = self.chance.randint(1, 40), pick(("", "before", "behind"))
                self.said.append(f"publish {count} by {spec}, dies {dies!r}")
                self.publish(count, spec, dies)
            case "merge":
                self.said.append(f"merge {self.finish(self.merges())}")
            case "undo":
                rewinds = list(Rewind.objects.filter(parts__state="done").distinct().values_list("pk", flat=True))
                if rewinds:
                    self.said.append(f"undo {(chosen := pick(rewinds))}")
                    self.undo(chosen)
            case _:
                self._rewind_by_chance(spec)

    def _rewind_by_chance(self, spec: int) -> None:
        pick = self.chance.choice
        self.submit(spec)
        low = self.chance.randrange(self.end)
        high = min(self.end, low + self.chance.randint(1, 30))
        asked: dict[str, Any] = {"start_offsets": {"0": low}, "end_offsets": {"0": high}}
        if pick((True, False, False)):
            asked = {"spec_version": pick([*self.versions])}
        redone = Rewind.objects.filter(parts__state="done").first()
        if redone is not None and pick((True, False, False)):
            asked = {"of_rewind": redone.pk, "read_with": version_before(redone)}
        asked |= {"others": pick(("own", "read_with")), "dry_run": pick((True, False, False, False))}
        how: dict[str, Any] = {
            "kill": pick(("", *PLACES)),
            "merge_at": pick(("", "", "before", "between")),
            "meanwhile": pick(("", "", "suspend", "terminate")),
            "cancel": pick((True, *[False] * 4)),
        }
        self.said.append(f"rewind {asked}, present {spec}, {how}")
        self.rewind(asked, **how)


@pytest.fixture
def world(
    live_server: Any, owner: Client, broker: Broker, checked_here: None, settings: LazySettings, tmp_path: Path
) -> Iterator[World]:
    settings.INTERNAL_URL = live_server.url
    settings.DEEP_STORAGE = str(tmp_path / "segments")
    settings.FAILPOINTS_FILE = str(tmp_path / "failpoints.json")
    settings.TASK_DIR = str(tmp_path / "tasks")
    Path(settings.FAILPOINTS_FILE).write_text("{}")
    make_receipt_partitions()
    Resident.objects.create(pk=COMPACTOR, token_hash=token_hash(TOKEN), slots=10, launched_at=timezone.now())
    topic = broker.topic(partitions=1)
    yield World(owner, broker, live_server.url, topic, tmp_path, "offset_range", random.Random(0))
    close_old_connections()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_are_those_of_a_clean_run(world: World, seed: int) -> None:
    world.chance = random.Random(seed)
    world.lane = "share_group" if seed % 4 == 3 else "offset_range"
    world.publish(40, 1)
    world.check()
    for _ in range(STEPS):
        world.step()
        print(f"seed {seed}:", *world.said, sep="\n  ")
        world.said.clear()
        world.check()
