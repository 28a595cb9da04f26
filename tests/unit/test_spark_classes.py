"""The file with Spark's classes: named to spark-submit once it is there, one for each Java and PySpark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.embedded import spark_classes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADGATE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    return tmp_path


def test_it_is_named_once_it_is_there_beside_what_else_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_classes.submit_options() == {}
    file = spark_classes._archive_path()
    file.touch()
    assert spark_classes.submit_options() == {"SPARK_SUBMIT_OPTS": f"-XX:SharedArchiveFile={file}"}
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=y")
    assert spark_classes.submit_options() == {"SPARK_SUBMIT_OPTS": f"-Dx=y -XX:SharedArchiveFile={file}"}


def test_it_is_made_once(cache: Path) -> None:
    spark_classes._archive_path().touch()
    spark_classes.prepare_classes(cache / "log")
    assert not (cache / "log").exists(), "nothing was run"


def test_jars_that_were_installed_anew_have_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    monkeypatch.setattr(spark_classes, "spark_jars", lambda: jars)
    before = spark_classes._archive_path()
    assert spark_classes._archive_path() == before
    os.utime(jars, ns=(1, 1))
    assert spark_classes._archive_path() != before


def test_a_java_that_can_not_make_it_stops_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text("#!/bin/sh\necho unrecognised option\nexit 1\n")
    submit.chmod(0o755)
    monkeypatch.setattr(spark_classes.sys, "executable", str(tmp_path / "bin" / "python"))
    spark_classes.prepare_classes(tmp_path / "log")
    assert "unrecognised option" in (tmp_path / "log").read_text()
    assert spark_classes.submit_options() == {}
