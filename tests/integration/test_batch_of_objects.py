"""Objects of Google's and Azure's storages that a batch task reads, through pyarrow's own clients.

The servers are stand-ins that speak the vendors' protocols: the real ones can't be run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.batch.errors import InputChanged, InputRefused
from ingestion.batch.inputs import Inputs
from ingestion.batch.splits import plan_splits
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.batch_protocol import Reachable
from tests.support.batch_run import CSV, Run, a_table, is_same, spec_of
from tests.support.object_servers import ObjectServer, object_server

ROWS = a_table(900)
BUCKET = "the-bucket"
TYPES = {"google": ("google", "gs://"), "azure": ("azureStorage", "azureStorage://account/")}


@pytest.fixture(params=TYPES)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectServer]:
    """Three objects in the site's folder, and one beside it."""
    with object_server(request.param, tmp_path / "held") as running:
        for key, rows in (
            ("in/2025/a.csv", ROWS[:300]),
            ("in/2025/b.csv", ROWS[300:600]),
            ("in/2026-c.csv", ROWS[600:]),
            ("inx/d.csv", ROWS[:9]),
        ):
            running.put(BUCKET, key, rows.to_csv(index=False))
        yield running


def source_of(server: ObjectServer, **named: Any) -> dict[str, Any]:
    """``named``: keys for uris and prefixes."""
    kind, begin = TYPES[server.kind]
    return {"type": kind, **{field: [f"{begin}{BUCKET}/{key}" for key in keys] for field, keys in named.items()}}


def run(server: ObjectServer, tmp_path: Path, source: dict[str, Any], size: int = 10_000) -> Run:
    reachable = Reachable(locations=["s3://elsewhere/in", server.location(BUCKET, "in")])
    return Run(spec_of(source, CSV), tmp_path, size=size, reachable=reachable)


def test_objects_are_found_by_address_by_key_and_by_how_they_begin(server: ObjectServer, tmp_path: Path) -> None:
    cut = run(server, tmp_path, source_of(server, prefixes=["in/2025/", "in/2026-"]), size=2_000)
    assert len(cut.splits) > 3
    assert is_same(cut.stored(tmp_path), ROWS)
    assert run(server, tmp_path, source_of(server, uris=["in/2025/b.csv"])).summed("processed") == 300
    assert run(server, tmp_path, source_of(server, prefixes=["in/"])).summed("processed") == 900
    by_key = {"google": (BUCKET, "in/2025/a.csv"), "azure": ("account", f"{BUCKET}/in/2025/a.csv")}[server.kind]
    objects = [{"bucket": by_key[0], "path": by_key[1]}]
    assert run(server, tmp_path, {"type": TYPES[server.kind][0], "objects": objects}).summed("processed") == 300


def test_nothing_else_is_read(server: ObjectServer, tmp_path: Path) -> None:
    for source in (
        source_of(server, uris=["inx/d.csv"]),
        source_of(server, prefixes=["in"]),
        source_of(server, prefixes=[""]),
        {"type": "s3", "uris": [f"s3://{BUCKET}/in/2025/a.csv"]},
    ):
        with pytest.raises(InputRefused, match="is not below the locations of HEADGATE_INPUT_LOCATIONS"):
            run(server, tmp_path, source)
    with pytest.raises(InputRefused, match="nothing to read"):
        run(server, tmp_path, source_of(server, prefixes=["in/2027"]))


def test_an_object_that_is_not_there_or_has_changed_ends_the_task(server: ObjectServer, tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match=r"none\.csv can't be read"):
        run(server, tmp_path, source_of(server, uris=["in/2025/none.csv"]))
    spec = spec_of(source_of(server, uris=["in/2025/a.csv"]), CSV)
    inputs = Inputs(Reachable(locations=[server.location(BUCKET, "in")]))
    found = plan_splits(spec, inputs, 1)[0].parts[0].file
    assert found is not None
    server.put(BUCKET, "in/2025/a.csv", ROWS[:10].to_csv(index=False))
    with pytest.raises(InputChanged, match="has changed since the task began"), inputs.open_input(found):
        pass


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"type": "google"}, "give one of uris, prefixes and objects"),
        ({"type": "google", "uris": ["s3://bucket/x"]}, "must be gs://bucket/key"),
        ({"type": "google", "prefixes": ["gs://bucket/a/../b"]}, "must be gs://bucket/key"),
        ({"type": "google", "objects": [{"bucket": "UP", "path": "x"}]}, "must be gs://bucket/key"),
        ({"type": "google", "uris": ["gs://bucket/x"], "objectGlob": "*.json"}, "objectGlob"),
        ({"type": "azureStorage", "uris": ["azure://container/x"]}, "must be azureStorage://account/container/key"),
        ({"type": "azureStorage", "uris": ["azureStorage://acc/c/x"]}, "must be azureStorage://account/container/key"),
        ({"type": "azureStorage", "uris": ["azureStorage://acc/con/x"], "properties": {"key": "k"}}, "properties"),
        ({"type": "azure", "uris": ["azure://container/x"]}, "use azureStorage, whose addresses name the storage"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(source: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of(source, CSV)
