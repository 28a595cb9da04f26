"""Files that no segment names: found and deleted, in a folder and on S3, and nothing else is."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.core.management import CommandError, call_command

from controlplane.segments import celery_tasks, orphans
from controlplane.segments.models import Segment
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.local import LocalStorage
from ingestion.segments.sweep import Sweep
from ingestion.specs.messages.deep_storage import SweepOrder, SweepPage, SweepVerdict
from tests.support.asked_here import sweep_here
from tests.support.django_cast import Cast
from tests.support.s3 import CREDENTIALS, s3_server

DAY = timedelta(days=1)
PLACE = "flights/2013-01-01T00-00-00.000Z_2013-01-02T00-00-00.000Z/2025-06-01T00-00-00.000Z"

Put = Callable[..., str]
SOME_ID = "7f1e8a52-7f0b-4a3e-9a30-0d8f6a5f2c11"


@pytest.fixture
def root(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which a thread looks through; ``test_on_s3`` has a process do it."""
    sweep_here(monkeypatch)
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    return tmp_path / "deep"


@pytest.fixture
def put(root: Path) -> Put:
    def stored(age: timedelta, path: str | None = None, size: int = 10) -> str:
        path = path or f"{PLACE}/{uuid.uuid4()}.parquet"
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
        when = (datetime.now(UTC) - age).timestamp()
        os.utime(file, (when, when))
        return path

    return stored


def register(cast: Cast, path: str, used: bool = True) -> None:
    model = cast.segments[0]
    Segment.objects.create(
        datasource=cast.datasource,
        interval_start=model.interval_start,
        interval_end=model.interval_end,
        version=model.version,
        partition_num=1000 + Segment.objects.count(),
        rows=1,
        size_bytes=10,
        sha256="a" * 64,
        path=path,
        min_time=model.min_time,
        max_time=model.max_time,
        schema=model.schema,
        task_id="task",
        used=used,
        created_at=model.created_at,
    )


def cleaned_up(*arguments: str) -> str:
    said = StringIO()
    call_command("cleanup_orphans", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def left(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}


def test_only_old_files_that_nobody_names_go(cast: Cast, put: Put, root: Path) -> None:
    orphan = [put(2 * DAY), put(25 * DAY, size=90), put(2 * DAY, f"{PLACE}/.{uuid.uuid4().hex}.tmp")]
    used, unused, young = put(9 * DAY), put(9 * DAY), put(timedelta(hours=23))
    register(cast, used)
    register(cast, unused, used=False)
    assert left(root) == {*orphan, used, unused, young}
    assert cleaned_up() == (
        "3 files (110 bytes) deleted, of 6 checked: 2 belong to segments, 1 are too young, 0 are not Headgate's\n"
    )
    assert left(root) == {used, unused, young}


def test_a_dry_run_deletes_nothing(cast: Cast, put: Put, root: Path) -> None:
    there = {put(2 * DAY), put(2 * DAY, size=20)}
    assert cleaned_up("--dry-run").startswith("2 files (30 bytes) would be deleted, of 2 checked")
    assert left(root) == there


def test_the_grace_period_may_be_given(cast: Cast, put: Put, root: Path, settings: Any) -> None:
    hour, day, week = put(timedelta(hours=1)), put(2 * DAY), put(8 * DAY)
    cleaned_up("--older-than", "P7D")
    assert left(root) == {hour, day}
    settings.ORPHAN_GRACE = timedelta(days=3)
    celery_tasks.clean_up_orphans()
    assert left(root) == {hour, day}
    said = cleaned_up("--older-than", "PT30M")
    assert "may still be published" in said
    assert left(root) == set()
    assert week not in left(root)


def test_by_default_it_is_a_day() -> None:
    assert timedelta(hours=24) == site.ORPHAN_GRACE


@pytest.mark.parametrize("duration", ["24h", "-PT1H", "P", "PT", "PT-1H", "P1Y", "1", ""])
def test_other_periods_are_refused(duration: str, root: Path) -> None:
    with pytest.raises(CommandError, match=r"not an ISO 8601 duration|expected one argument"):
        cleaned_up("--older-than", duration)


def test_what_headgate_did_not_put_there_stays(cast: Cast, put: Put, root: Path) -> None:
    """Row 14 of the security checklist: nor what is not Headgate's."""
    foreign = {
        "notes.txt",
        "flights/notes.txt",
        f"{PLACE}/notes.txt",
        f"{PLACE}/part-0000.parquet",
        f"{PLACE}/below/{SOME_ID}.parquet",
        f"flights/2013/2025/{SOME_ID}.parquet",
        f"backup/{PLACE}/{SOME_ID}.parquet",
        f".hidden/{PLACE.partition('/')[2]}/{SOME_ID}.parquet",
    }
    for path in foreign:
        put(99 * DAY, path)
    cleaned_up("--older-than", "PT0S")
    assert left(root) == foreign


def test_nothing_is_followed_out_of_the_root(cast: Cast, put: Put, root: Path, tmp_path: Path) -> None:
    """Row 14 of the security checklist: cleaning up deletes nothing elsewhere."""
    outside = tmp_path / "outside" / PLACE
    outside.mkdir(parents=True)
    file = outside / f"{uuid.uuid4()}.parquet"
    file.write_bytes(b"x")
    os.utime(file, (0, 0))
    put(2 * DAY)
    (root / "linked").symlink_to(tmp_path / "outside/flights")
    (root / PLACE / "v2").symlink_to(outside)
    (root / PLACE / f"{uuid.uuid4()}.parquet").symlink_to(file)
    cleaned_up("--older-than", "PT0S")
    assert file.exists()
    assert sum(p.is_symlink() for p in root.rglob("*")) == 3
    assert [p for p in root.rglob("*.parquet") if not p.is_symlink()] == []


def test_a_publish_that_commits_after_the_listing_keeps_its_files(cast: Cast, put: Put, root: Path) -> None:
    publishing, orphan = put(2 * DAY), put(2 * DAY)
    order = SweepOrder(deep_storage=str(root), now=datetime.now(UTC), grace=DAY)

    def judge(page: SweepPage) -> SweepVerdict:
        assert {f.path for f in page.files} == {publishing, orphan}
        register(cast, publishing)
        return SweepVerdict(delete=orphans._orphans(page))

    end = Sweep(LocalStorage(root), order, judge).run()
    assert (end.deleted, end.complete, end.error) == (1, True, "")
    assert left(root) == {publishing}


def test_pages_are_bounded_and_all_is_seen(cast: Cast, put: Put, root: Path) -> None:
    kept = {put(2 * DAY) for _ in range(5)}
    for path in kept:
        register(cast, path)
    for _ in range(1500):
        put(2 * DAY)
    sizes = []

    def judge(page: SweepPage) -> SweepVerdict:
        sizes.append(len(page.files))
        return SweepVerdict(delete=[])

    order = SweepOrder(deep_storage=str(root), now=datetime.now(UTC), grace=DAY)
    Sweep(LocalStorage(root), order, judge).run()
    assert sizes == [1000, 505]
    assert cleaned_up().startswith("1,500 files (15,000 bytes) deleted, of 1,505 checked: 5 belong to segments")
    assert left(root) == kept


def test_a_run_ends_when_its_time_is_up(cast: Cast, put: Put, root: Path) -> None:
    for day in range(10, 20):
        put(2 * DAY, PLACE.replace("2013-01-01", f"2013-01-{day}") + f"/{uuid.uuid4()}.parquet")
    done = orphans.clean_up(grace=DAY, seconds=1e-6)
    assert not done.end.complete
    assert "Not everything was checked" in done.summary()
    assert orphans.clean_up(grace=DAY, seconds=60).end.complete
    assert left(root) == set()


def test_an_empty_or_missing_deep_storage_is_no_error(cast: Cast, root: Path) -> None:
    assert cleaned_up().startswith("0 files (0 bytes) deleted, of 0 checked")


def test_a_folder_that_can_not_be_read_is_told(cast: Cast, root: Path) -> None:
    root.parent.mkdir(exist_ok=True)
    root.write_bytes(b"")
    with pytest.raises(CommandError, match="can't list the root: Not a directory"):
        cleaned_up()


def test_on_s3(cast: Cast, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own deletes here, as in production."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "file").write_bytes(b"content")
    named, orphan = (f"{PLACE}/{uuid.uuid4()}.parquet" for _ in range(2))
    with s3_server(tmp_path) as server:
        settings.DEEP_STORAGE = server.location("deep")
        storage, beside = open_deep_storage(settings.DEEP_STORAGE), open_deep_storage(server.location("other"))
        for path in (named, orphan, "notes.txt"):
            storage.put(tmp_path / "file", path)
        beside.put(tmp_path / "file", orphan)
        register(cast, named)
        with monkeypatch.context() as here:
            sweep_here(here)
            assert cleaned_up().startswith("0 files (0 bytes) deleted, of 2 checked: 0 belong to segments, 2 are too")
        said = cleaned_up("--older-than", "PT0S")
        assert "1 files (7 bytes) deleted, of 2 checked: 1 belong to segments" in said
        assert {f.path for f in storage.files()} == {named, "notes.txt"}
        assert beside.exists(orphan)
        sweep_here(monkeypatch)
        settings.DEEP_STORAGE = server.location(bucket="another-bucket")
        with pytest.raises(CommandError, match="there is no such bucket"):
            cleaned_up()
