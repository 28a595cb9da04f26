"""The Dockerfile: what it copies and installs, and as whom it runs. No engine is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import debian_image
from tests.support.dockerfile import PROJECT, dockerfile, image_environment, instructions


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignore = (PROJECT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore  # nothing goes in but what is named
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    copies = [words for instruction, *words in dockerfile() if instruction == "COPY"]
    sources = [w for words in copies if not words[0].startswith("--from") for w in words[:-1] if not w.startswith("--")]
    assert sources
    for source in sources:
        assert (PROJECT / source).exists(), source
        assert source.split("/")[0] in allowed, f"{source} is ignored"
    assert allowed == {source.split("/")[0] for source in sources}


def test_packages_are_checked_by_their_hashes() -> None:
    installs = [" ".join(words) for instruction, *words in dockerfile() if instruction == "RUN" and "pip" in words]
    assert len(installs) == 1
    assert "--require-hashes -r /tmp/requirements.txt" in installs[0]
    assert ["COPY", "requirements.txt", "/tmp/requirements.txt"] in dockerfile()
    lock = (PROJECT / "requirements.txt").read_text()
    pins = re.findall(r"^([\w.\[\]-]+)==\S+ \\\n\s+--hash=sha256:", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[\w.\[\]-]+==", lock, re.MULTILINE)) > 0
    assert {"pyspark", "django", "confluent-kafka"} <= {pin.split("[")[0] for pin in pins}


def test_the_image_is_not_run_as_root_and_has_java() -> None:
    users = [words[0] for instruction, *words in dockerfile() if instruction == "USER"]
    assert users[-1] == "headgate"
    bases = {words[0] for instruction, *words in dockerfile() if instruction == "FROM"}
    assert bases == {"${PYTHON_IMAGE}"}
    assert any("openjdk-17-jre-headless" in words for instruction, *words in dockerfile() if instruction == "RUN")


def test_executors_find_python_and_the_code() -> None:
    environment = image_environment()
    workdir = next(words[0] for instruction, *words in dockerfile() if instruction == "WORKDIR")
    assert environment["PYTHONPATH"] == workdir
    assert environment["PYSPARK_PYTHON"] == "/opt/venv/bin/python"
    assert environment["PATH"].startswith("/opt/venv/bin:")
    copied = [words for instruction, *words in dockerfile() if instruction == "COPY"]
    assert ["docker/spark-defaults.conf", environment["SPARK_CONF_DIR"] + "/spark-defaults.conf"] in copied


def test_image_test_can_run_every_instruction(tmp_path: Path) -> None:
    """All but RUN, which needs root and a network: `make image-test` runs those too."""
    packages = debian_image.Stage(tmp_path / "packages")
    packages.inside("/opt/venv/bin").mkdir(parents=True)
    image = debian_image.Stage(tmp_path / "image")
    copied = [(name, rest) for name, rest in instructions() if name not in ("ARG", "FROM", "RUN")]
    for name, rest in copied:
        image = debian_image.step(image, name, rest, {"packages": packages})
    assert image.user == "headgate" and image.folder == "/opt/headgate"
    assert image.environment["PATH"].startswith("/opt/venv/bin:/usr/local/sbin:")
    assert image.command == ("/usr/local/bin/headgate", "web")
    assert image.inside(image.command[0]).stat().st_mode & 0o777 == 0o755
    for file in (
        "manage.py",
        "controlplane/config/settings.py",
        "frontend/static/headgate/page.js",
        "templates/base.html",
    ):
        assert image.inside(file).read_bytes() == (PROJECT / file).read_bytes()
    assert image.inside("/etc/headgate/spark/spark-defaults.conf").is_file()
    assert image.inside("/opt/venv/bin").is_dir()
    assert not image.inside("frontend/assets").exists() and not list(image.root.rglob("*.pyc"))
    *_, script = image.argv(["headgate", "web"])
    assert script == "cd /opt/headgate && exec headgate web"


def test_a_root_with_a_mount_in_it_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "/proc" in debian_image.mounted_below(Path("/"))
    assert debian_image.mounted_below(tmp_path) == []
    (tmp_path / "root").mkdir()
    monkeypatch.setattr(debian_image, "mounted_below", lambda folder: [f"{folder}/proc"])
    with pytest.raises(RuntimeError, match="something is mounted there"):
        debian_image.remove(tmp_path / "root")
    assert (tmp_path / "root").is_dir()
