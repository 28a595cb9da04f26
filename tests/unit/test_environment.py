"""What settings say, and what of the environment the data plane's processes get."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.common.processes import passed_environment
from controlplane.config import env, postgresql
from ingestion.specs.inputs.input_source import is_below


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT24H", timedelta(days=1)),
        ("P7D", timedelta(days=7)),
        (" PT90M ", timedelta(minutes=90)),
        ("PT0S", timedelta()),
    ],
)
def test_durations(monkeypatch: pytest.MonkeyPatch, text: str, duration: timedelta) -> None:
    monkeypatch.setenv("HEADGATE_TEST", text)
    assert env.duration("HEADGATE_TEST", "PT1H") == duration


@pytest.mark.parametrize("text", ["", "24", "24h", "1 day", "-PT1H", "PT-1H", "P", "PT", "P1Y"])
def test_other_durations_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HEADGATE_TEST", text)
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_TEST must be an ISO 8601 duration such as PT24H"):
        env.duration("HEADGATE_TEST", "PT1H")


@pytest.mark.parametrize(
    ("address", "wanted", "options"),
    [
        ("postgresql://u:p%40ss@db:5433/d", ("d", "u", "p@ss", "db", "5433"), {}),
        (
            "postgresql://u:p@one:5432,two:5433/d?target_session_attrs=any&sslmode=verify-full",
            ("d", "u", "p", "one,two", "5432,5433"),
            {"target_session_attrs": "any", "sslmode": "verify-full"},
        ),
        ("postgresql:///d", ("d", "", "", "", ""), {}),
    ],
)
def test_addresses_of_the_metadata_store(
    monkeypatch: pytest.MonkeyPatch, address: str, wanted: tuple[str, ...], options: dict[str, str]
) -> None:
    monkeypatch.setenv("HEADGATE_TEST", address)
    found = postgresql.metadata_store("HEADGATE_TEST")
    assert tuple(found[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")) == wanted
    monkeypatch.setenv("HEADGATE_TEST", "postgresql:///d")
    assert found["OPTIONS"] == postgresql.metadata_store("HEADGATE_TEST")["OPTIONS"] | options


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:secret@db:5432",
        "postgresql://u:secret@[db/d",
        "mysql://u:secret@db/d",
        "postgresql://u:secret@db/d?ssl_mode=require",
        "secret",
    ],
)
def test_other_addresses_are_refused_without_the_password(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HEADGATE_TEST", address)
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_TEST must be an address") as refused:
        postgresql.metadata_store("HEADGATE_TEST")
    assert "secret" not in str(refused.value) and refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("location", "inside", "outside"),
    [
        ("s3://bucket/in/?region=x", "s3://bucket/in/a.json", "s3://bucket/inner/a.json"),
        ("gs://bucket", "gs://bucket/a.json", "gs://bucket2/a.json"),
        ("gs://anonymous@bucket/in", "gs://bucket/in/a.json", "gs://bucket/a.json"),
        (
            "abfss://logs@acme.dfs.core.windows.net/in",
            "azureStorage://acme/logs/in/a.json",
            "azureStorage://acme2/logs/in/a.json",
        ),
        (
            "abfs://acme@127.0.0.1:10000/logs/in?enable_tls=false",
            "azureStorage://acme/logs/in/a.json",
            "azureStorage://acme/in/a.json",
        ),
    ],
)
def test_locations_of_object_storages(
    monkeypatch: pytest.MonkeyPatch, location: str, inside: str, outside: str
) -> None:
    monkeypatch.setenv("HEADGATE_TEST", f"{location}, s3://other/x")
    assert env.object_locations("HEADGATE_TEST") == [location, "s3://other/x"]
    assert is_below(inside, location) and not is_below(outside, location)


@pytest.mark.parametrize(
    "text",
    [
        "/folder",
        "s3://",
        "s3://key@bucket/x",
        "gs://key@bucket/x",
        "https://acme.blob.core.windows.net/logs",
        "abfss://logs/in",
        "abfss://acme@logs/in",
        "abfss://acme:key@127.0.0.1:10000/logs",
        "abfs://acme@127.0.0.1:10000",
        "hdfs://host:9000/in",
    ],
)
def test_other_locations_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HEADGATE_TEST", text)
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_TEST must name locations such as s3://bucket/folder"):
        env.object_locations("HEADGATE_TEST")


def test_the_data_plane_gets_what_deep_storage_needs_and_no_secret_of_the_control_plane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Row 12 of the security checklist: no login of the database is among it."""
    needed = ("AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS")
    for name in (*needed, "HEADGATE_SECRET_KEY", "HEADGATE_REDIS_URL", "DATABASE_URL", "MY_PASSWORD"):
        monkeypatch.setenv(name, "value")
    given = passed_environment()
    assert {*needed, "PATH"} <= set(given)
    assert not {n for n in given if n.startswith("HEADGATE_")} | ({"DATABASE_URL", "MY_PASSWORD"} & set(given))
