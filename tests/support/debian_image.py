"""`make image-test`: the Dockerfile's steps, run in a Debian system that debootstrap makes, without a container engine.

The base image is replaced by the Python 3.11 of Debian. Commands run by chroot, as root or as the image user, and see
the network of this machine. Only /proc is mounted, which Java needs, and unmounted after each step. What it shows:
every step ends well, `spark-submit` finds its Java, and the command of the image serves /readyz from a migrated
database. Needs root, debootstrap and 5 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.dockerfile import PROJECT, instructions

SYSTEM = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What pip needs to reach packages from here. An engine's user would give them as build arguments.
FROM_HERE = ("PIP_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_INDEX_URL", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", "assets")  # .dockerignore
DEBIAN = ["debootstrap", "--variant=minbase", "--include=ca-certificates,netbase,tzdata,python3-venv", "bookworm"]


@dataclass(frozen=True)
class Stage:
    """A stage of the Dockerfile: its root, and what its instructions have set so far."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "root"
    command: tuple[str, ...] = ()

    def inside(self, path: str) -> Path:
        return self.root / os.path.normpath(os.path.join(self.folder, path)).lstrip("/")

    def argv(self, command: Sequence[str], extra: Mapping[str, str] | None = None) -> list[str]:
        """A command line of this machine that runs *command* in the root, as the stage's user."""
        environment = {**SYSTEM, **self.environment, **(extra or {})}
        words = [f"{name}={value}" for name, value in environment.items()]
        script = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        return ["chroot", f"--userspec={self.user}", str(self.root), "/usr/bin/env", "-i", *words, "sh", "-c", script]


def mounted_below(folder: Path) -> list[str]:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in points if Path(point).is_relative_to(folder)]


@contextmanager
def proc(root: Path) -> Iterator[None]:
    """Java does not start without /proc. It is gone again when the block ends, however it ends."""
    (root / "proc").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)


def remove(folder: Path) -> None:
    """Deletes a root. Raises RuntimeError if something is mounted in it: that would be deleted too."""
    if mounts := mounted_below(folder):
        raise RuntimeError(f"{folder} is not deleted, because something is mounted there: {', '.join(mounts)}")
    if folder.exists():
        shutil.rmtree(folder)


def debian(folder: Path) -> Path:
    """A root with Debian and the `python` of the base image, made once."""
    if folder.exists():
        return folder
    unfinished = folder.with_name(folder.name + "-unfinished")
    remove(unfinished)
    try:
        subprocess.run([*DEBIAN, str(unfinished)], check=True)
    finally:
        for point in reversed(mounted_below(unfinished)):
            subprocess.run(["umount", point], check=True)
    (unfinished / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
    shutil.rmtree(unfinished / "usr/share/man")  # the slim image has none
    if "PIP_CERT" in os.environ:
        shutil.copy(CERTIFICATES, unfinished / str(CERTIFICATES).lstrip("/"))
    shutil.copy("/etc/hosts", unfinished / "etc/hosts")  # an engine writes it; Spark looks up the host's own name
    unfinished.rename(folder)
    return folder


def build(folder: Path, base: Path) -> Stage:
    """Runs every instruction. The last stage. Raises CalledProcessError, and ValueError for an unknown instruction."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for name, rest in instructions():
        print(f"{name} {rest[:100]}", flush=True)
        if name == "FROM":
            label = rest.partition(" AS ")[2] or "image"
            remove(folder / label)
            subprocess.run(["cp", "-a", str(base), str(folder / label)], check=True)
            stage = stages[label] = Stage(folder / label)
        elif stage is not None:
            stage = step(stage, name, rest, stages)
    assert stage is not None
    return stage


def step(stage: Stage, name: str, rest: str, stages: Mapping[str, Stage]) -> Stage:
    match name:
        case "ENV":
            new = dict(word.split("=", 1) for word in shlex.split(rest))
            path = {**SYSTEM, **stage.environment}["PATH"]
            return replace(
                stage, environment={**stage.environment, **{k: v.replace("$PATH", path) for k, v in new.items()}}
            )
        case "RUN":
            pip = {name: os.environ[name] for name in FROM_HERE if name in os.environ}
            with proc(stage.root):
                subprocess.run(stage.argv(["sh", "-c", rest], pip), check=True, stdin=subprocess.DEVNULL)
        case "COPY":
            copy(stage, shlex.split(rest), stages)
        case "WORKDIR":
            stage.inside(rest).mkdir(parents=True, exist_ok=True)
            return replace(stage, folder=rest)
        case "USER":
            return replace(stage, user=rest)
        case "ENTRYPOINT" | "CMD":
            return replace(stage, command=(*stage.command, *json.loads(rest)))
        case "EXPOSE":
            pass
        case _:
            raise ValueError(f"The Dockerfile has the instruction {name}, which this cannot run.")
    return stage


def copy(stage: Stage, words: Sequence[str], stages: Mapping[str, Stage]) -> None:
    options = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
    *sources, target = [word for word in words if not word.startswith("--")]
    for source in sources:
        found = stages[options["from"]].inside(source) if "from" in options else PROJECT / source
        place = stage.inside(target) / found.name if target.endswith("/") else stage.inside(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            shutil.copytree(
                found, place, symlinks=True, dirs_exist_ok=True, ignore=None if "from" in options else IGNORED
            )
        else:
            shutil.copy(found, place)
        if "chmod" in options:
            place.chmod(int(options["chmod"], 8))


@contextmanager
def running(image: Stage, settings: Mapping[str, str], port: int) -> Iterator[str]:
    """The image's own command, on another port than its own. Its address; it ends with the block."""
    process = subprocess.Popen(image.argv([*image.command, "--port", str(port)], settings))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_ready(address: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=10) as answer:
                assert answer.status == 200
                return
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > end:
                raise TimeoutError(f"{address}/readyz did not answer 200 within {seconds:g} s: {error}") from error
            time.sleep(0.5)


def check(image: Stage) -> None:
    """That it works as the image's user: Spark's version, the code is complete, migrations, and web with /readyz."""
    from controlplane.embedded.ports import choose_port
    from controlplane.embedded.postgres import Postgres
    from controlplane.embedded.valkey import Valkey

    assert image.user != "root"
    done = subprocess.run(image.argv(["spark-submit", "--version"]), capture_output=True, text=True, check=True)
    assert "version 4.2" in done.stderr + done.stdout, done.stderr
    entrypoint = image.command[0]
    with tempfile.TemporaryDirectory() as home, Postgres(home) as postgres, Valkey(home) as valkey:
        settings = {
            "DATABASE_URL": postgres.dsn,
            "HEADGATE_REDIS_URL": valkey.url,
            "HEADGATE_SECRET_KEY": "image-test-" * 6,
            "HEADGATE_INSECURE_COOKIES": "1",
            "HEADGATE_DEEP_STORAGE": "/var/lib/headgate/segments",
            "HEADGATE_TASK_DIR": "/var/lib/headgate/tasks",
            "HEADGATE_LOGIN_PASSWORD": "image-test-password",
        }
        for arguments in (["manage", "check"], ["migrate", "--username", "admin", "--team", "demo", "--superuser"]):
            subprocess.run(image.argv([entrypoint, *arguments], settings), check=True)
        with running(image, settings, choose_port(None)) as address:
            wait_ready(address, 180)
            with urllib.request.urlopen(f"{address}/login/", timeout=30) as page:
                assert b"Headgate" in page.read()
        doctor = subprocess.run(
            image.argv([entrypoint, "manage", "doctor", "--json"], settings),
            capture_output=True,
            text=True,
            check=False,
        )
        print(doctor.stdout, doctor.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make image-test", description=__doc__)
    parser.add_argument("--folder", type=Path, default=PROJECT / ".headgate" / "image", help="where the roots are kept")
    folder = parser.parse_args().folder.resolve()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        parser.error("It needs root and debootstrap. Install it with: apt-get install debootstrap")
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    image = build(folder, debian(folder / "debian"))
    with proc(image.root):
        check(image)
    print(f"The image's steps work: {image.root}, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
