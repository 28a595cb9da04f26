"""Any sequence of publishes, merges, replays, rewinds, undos: the rows are those of a clean run, each offset once.

Rewinds publish in up to three pieces a reading, and read the other records with one version or with their own.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from controlplane.common.errors import Conflict
from controlplane.publishing import fence, rewinds
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import OFFSET_BITS, ProgressKey, Receipt, RewindPart
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.publishing.rewind_pieces import drop
from controlplane.publishing.rewind_plan import Loose, RangesOf, Readers, parts_of
from controlplane.publishing.rewind_selection import Choice, chosen_records, groups_of, select
from controlplane.publishing.selectors.fate import outcomes_at
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Interval, Segment
from controlplane.sources.models import Source
from ingestion.specs import offsets
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import Outcomes, PublishRequest
from tests.integration.test_rewinds import begun, poison, reading
from tests.support.publishes import DAY, make_source, request, segment, send, settled_offsets, start

DAYS = (DAY, DAY + timedelta(days=1))
Row = tuple[datetime, int, int]  # interval, offset, and the version that gave it
Step = tuple[str, int, int]
VERSIONS = st.integers(1, 3)
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 6), VERSIONS),
    st.tuples(st.just("merge"), st.integers(0, 1), st.integers(2, 3)),
    st.tuples(st.just("rewind"), st.integers(0, 7), VERSIONS),
    st.tuples(st.just("disturbed"), st.integers(0, 7), VERSIONS),
    st.tuples(st.just("own"), st.integers(0, 7), VERSIONS),
    st.tuples(st.just("undo"), st.integers(0, 3), VERSIONS),
    st.tuples(st.just("replay"), st.integers(1, 4), VERSIONS),
)
SEQUENCES = st.lists(STEPS, min_size=3, max_size=14)
# A merge that had begun before takes the segments of two parts.
PARTS_MERGED_TOGETHER = [
    ("publish", 1, 1),
    ("rewind", 0, 2),
    ("rewind", 1, 3),
    *[("publish", 1, 1)] * 3,
    ("disturbed", 2, 1),
]
# The second finds a record as bad as the first did. Undone one after the other, nothing of either is in quarantine.
BAD_IN_TWO_THAT_ARE_UNDONE = [*[("rewind", 1, 3)] * 2, *[("undo", 0, 1)] * 4]

# A merge joins the segments of two parts. The first part reads a record of the second, and puts it into quarantine.
BAD_IN_A_PART_THAT_IS_READ_BY_ANOTHER = [("publish", 2, 1), ("merge", 0, 2), ("rewind", 1, 1), ("disturbed", 5, 2)]


def days_of(version: int, offset: int) -> tuple[datetime, ...]:
    """In which intervals a record has a row by a version of the spec: in none, one, or both."""
    return {2: DAYS[:1], 3: DAYS[1:], 4: DAYS}.get(fate_of(version, offset), ())


def fate_of(version: int, offset: int) -> int:
    """0: thrown away. 1: unparseable."""
    return (7 * offset + 3 * version) % 5


@dataclass
class World:
    """What must be so, beside what is."""

    source: Source
    end: int = 0
    version: dict[int, int] = field(default_factory=dict)  # of each offset: the spec version that holds
    rows: dict[str, list[Row]] = field(default_factory=dict)  # of each segment, by its path
    done: list[tuple[int, dict[int, int]]] = field(default_factory=list)  # parts, and the versions before
    asked: dict[int, object] = field(default_factory=dict)  # of each offset, what its outcomes followed from

    def publish(self, count: int, version: int) -> None:
        new = range(self.end, self.end + count)
        task = f"task-{version}"
        self._send(self._request(start(self.source, task=task), new, version), version, task)
        self.end += count
        self.version |= dict.fromkeys(new, version)

    def merge(self, day: int, most: int) -> None:
        used = list(Segment.objects.filter(used=True, interval_start=DAYS[day]).order_by("partition_num")[:most])
        if len(used) < 2:
            return
        rows = [row for s in used for row in self.rows[s.path]]
        cut = len(rows) // 2
        files = [segment({0: [(0, n)]}, DAYS[day]) for n in (cut, len(rows) - cut) if n]
        files = [f.model_copy(update={"offsets": {}}) for f in files]
        target = ReplaceTarget(self.source.datasource, DAYS[day], DAYS[day] + timedelta(days=1), "compact_1", False)
        what = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read={s.pk: s.rows for s in used}, segments=files)
        replace(target, what)
        halves = [half for half in (rows[:cut], rows[cut:]) if half]
        self.rows |= {file.path: half for file, half in zip(files, halves, strict=True)}

    def replay(self, most: int, version: int) -> None:
        """The first records of the quarantine are read again, as its page does it."""
        kept = QuarantinedRecord.objects.filter(state=QuarantinedRecord.State.KEPT).order_by("offset")
        read = list(kept.values_list("offset", flat=True)[:most])
        if not read:
            return
        task = f"replay_{uuid.uuid4().hex[:8]}-{version}"
        assert replays.take_records(QuarantinedRecord.objects.filter(offset__in=read), task) == len(read)
        begins = fence.take_epoch(task_id=task, datasource=self.source.datasource, source=self.source, replay=True)
        self._send(self._request(begins.epoch, read, version), version, task)
        self.version |= dict.fromkeys(read, version)

    def rewind(self, low: int, version: int, disturbed: bool = False, own: bool = False) -> None:
        high = low + 1 + low % 3
        choice = Choice(offsets={0: [(low, high)]})
        groups, loose = select(self.source, choice)
        assert not [g for g in groups if g.refusal]
        readers = Readers(self.source.pk)
        if own:
            chosen = chosen_records(self.source, choice)
            versions = {task: ("s", int(task.rpartition("-")[2])) for group in groups for _, task in group.readers}
            readers = Readers(self.source.pk, ("s", version), versions, lambda reader: chosen.get(reader[1], {}))
        plans = parts_of(groups, loose, readers)
        wanted = {o for o in range(low, high) if o < self.end}
        assert wanted <= {o for plan in plans for o in offsets.expanded(plan.ranges.get(0, []))}
        for plan in plans:
            others = [
                {"source": r.source, "version": (r.version or ("s", 0))[1], "ranges": flat(r.ranges)}
                for r in plan.others
            ]
            part = begun(self.source, plan, f"rewind_{uuid.uuid4().hex[:8]}-{version}")
            RewindPart.objects.filter(pk=part.pk).update(others=others)
            part.refresh_from_db()
            self._read(part, version, pieces=1 + low % 3, disturbed=disturbed)

    def _read(self, part: RewindPart, version: int, pieces: int, disturbed: bool) -> None:
        """In several publishes; ``disturbed``: a merge comes before the last of them."""
        if not part.taken:  # ``rewind_rounds`` holds no others
            held = QuarantinedRecord.objects.filter(offset__in=list(offsets.expanded(part.wanted.get(0, []))))
            replays.take_records(held, part.task_id)
        todo = self._publishes(part, version, pieces)
        before, used = dict(self.version), self.in_use()
        for what, read_with, task in todo[:-1]:
            self._send(what(), read_with, task)
            assert self.in_use() == used
        if disturbed:
            for day in (0, 1):
                self.merge(day, 10)
        used = self.in_use()
        what, read_with, task = todo[-1]
        try:
            with transaction.atomic():
                self._send(what(), read_with, task)
        except PublishRefused:
            assert disturbed and self.in_use() == used
            self._plan_again(part, version)
            return
        part.refresh_from_db()
        assert part.state == RewindPart.State.DONE
        now = {o: r["version"] or version for r in part.readings for o in offsets.expanded(plain(r["ranges"]))}
        self.done.append((part.pk, {o: before[o] for o in now}))
        self.version |= now

    def _publishes(
        self, part: RewindPart, version: int, pieces: int
    ) -> list[tuple[Callable[[], PublishRequest], int, str]]:
        """What tasks publish of it, each reading by one of its own: when it is called, the part is in its hands."""
        found: list[tuple[Callable[[], PublishRequest], int, str]] = []
        for n, reading_ in enumerate(part.readings):
            read_with = reading_["version"] or version
            task = part.task_id if n == 0 else f"{part.task_id}_{n}-{read_with}"
            read = sorted(offsets.expanded(plain(reading_["ranges"])))
            size = max(1, -(-len(read) // pieces))
            for first in range(0, len(read), size):

                def publish(
                    some: list[int] = read[first : first + size], n: int = n, task: str = task, by: int = read_with
                ) -> PublishRequest:
                    RewindPart.objects.filter(pk=part.pk).update(reading=n, task_id=task)
                    return self._request(reading(self.source, task), some, by)

                found.append((publish, read_with, task))
        return found

    def _plan_again(self, part: RewindPart, version: int) -> None:
        """A merge has taken one of its segments: nothing has changed, and it is read again from where they are now."""
        part.refresh_from_db()
        read = set(offsets.expanded(part.wanted[0]))
        plans = parts_of(groups_of(self.source, part.taken), Loose(), Readers(self.source.pk))
        if not plans:  # merged with the segments of a part before it, which has read its records, too
            RewindPart.objects.filter(pk=part.pk).update(state=RewindPart.State.FAILED)
            return
        [plan] = plans
        assert set(offsets.expanded(plan.ranges[0])) >= read
        RewindPart.objects.filter(pk=part.pk).update(
            taken=list(plan.segments), ranges=flat(plan.ranges), before=plan.before, others=[], reading=0
        )
        part.refresh_from_db()
        drop(part.pieces.all())
        self._read(part, version, pieces=2, disturbed=False)

    def undo(self, back: int) -> None:
        """One of the newest parts; what can't be undone stays as it is."""
        if back >= len(self.done):
            return
        pk, before = self.done[-1 - back]
        used = self.in_use()
        try:
            rewinds.undo_part(pk, "somebody")
        except Conflict:
            assert self.in_use() == used
        else:
            self.done.pop(-1 - back)
            self.version |= before

    def in_use(self) -> list[str]:
        return sorted(Segment.objects.filter(used=True).values_list("path", flat=True))

    def check(self) -> None:
        clean = Counter((day, o, v) for o, v in self.version.items() for day in days_of(v, o))
        assert Counter(row for path in self.in_use() for row in self.rows[path]) == clean
        for interval in Interval.objects.all():
            used = Segment.objects.filter(interval_start=interval.start, used=True)
            assert (interval.segments, interval.rows) == (used.count(), sum(s.rows for s in used))
        assert settled_offsets(self.source) == ({0: [(0, self.end)]} if self.end else {})
        self._check_books(sum(clean.values()))
        kept = QuarantinedRecord.objects.filter(state=QuarantinedRecord.State.KEPT).values_list("offset", flat=True)
        assert sorted(kept) == [o for o, v in sorted(self.version.items()) if fate_of(v, o) == 1]
        self._check_outcomes()

    def _check_outcomes(self) -> None:
        """An offset's outcomes follow from the receipts that hold it: asked where these, or what is right, differ."""
        names = {0: "thrown_away", 1: "unparseable"}
        key = ProgressKey.objects.get(source=self.source, partition=0)
        receipts = list(Receipt.objects.order_by("id").values_list("id", "hull", "outcomes"))
        for offset, version in self.version.items():
            number = (key.pk << OFFSET_BITS) + offset
            follows_from = names.get(fate_of(version, offset), "stored"), [r for r in receipts if number in r[1]]
            if self.asked.get(offset) != follows_from:
                assert follows_from[0] in outcomes_at(self.source, 0, offset)
                self.asked[offset] = follows_from

    def _check_books(self, rows: int) -> None:
        fates = Counter(fate_of(v, o) for o, v in self.version.items())
        totals = datasource_totals(self.source.datasource)
        assert (totals.polled, totals.published, totals.rolled_up) == (self.end, rows, 0)
        assert (totals.thrown_away, totals.unparseable, totals.quarantined) == (fates[0], fates[1], fates[1])
        assert totals.adds_up

    def _request(self, epoch: int, read: Iterable[int], version: int) -> PublishRequest:
        """The publish of these offsets by a version of the spec."""
        records = list(read)
        by_day = {day: [o for o in records if day in days_of(version, o)] for day in DAYS}
        files = [segment({0: offsets.ranges_of(some)}, day) for day, some in by_day.items() if some]
        thrown, bad = ([o for o in records if fate_of(version, o) == n] for n in (0, 1))
        outcomes = Outcomes(thrown_away=offsets.ranges_of(thrown), unparseable=offsets.ranges_of(bad))
        what = request(epoch, segments=files, outcomes={0: outcomes}, quarantined=[poison(o) for o in bad])
        further = sum(len(days_of(version, o)) == 2 for o in records)
        counters = what.counters.model_copy(update={"polled": len(records), "further_rows": further})
        return what.model_copy(update={"counters": counters})

    def _send(self, what: PublishRequest, version: int, task: str) -> None:
        for file in what.segments:
            stored = offsets.expanded(file.offsets[0])
            self.rows[file.path] = [(file.interval_start, offset, version) for offset in stored]
        send(what, task=task)


def flat(ranges: RangesOf) -> list[list[int]]:
    return [[p, start, end] for p, some in ranges.items() for start, end in some]


def plain(ranges: list[list[int]]) -> list[offsets.Range]:
    return [(start, end) for _, start, end in ranges]


def walk(steps: list[Step]) -> None:
    """After each step all is as it must be. Nothing of it stays."""
    with transaction.atomic():
        make_receipt_partitions()
        world = World(make_source("flights"))
        world.publish(6, 1)
        for name, n, version in steps:
            match name:
                case "publish":
                    world.publish(n, version)
                case "merge":
                    world.merge(n, version)
                case "undo":
                    world.undo(n)
                case "replay":
                    world.replay(n, version)
                case _:
                    world.rewind(n, version, disturbed=name == "disturbed", own=name == "own")
            world.check()
        transaction.set_rollback(True)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=SEQUENCES)
@example(steps=PARTS_MERGED_TOGETHER)
@example(steps=BAD_IN_TWO_THAT_ARE_UNDONE)
@example(steps=BAD_IN_A_PART_THAT_IS_READ_BY_ANOTHER)
def test_the_rows_are_those_of_a_clean_run(db: None, steps: list[Step]) -> None:
    """``deep/test_more_rewinds_by_chance`` tries three times as many."""
    walk(steps)
