"""The folder that holds all state of one embedded stack: `.headgate/` in the checkout, else in the user's home."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.embedded.errors import HomeRefused
from controlplane.embedded.files import read_json, write_atomically, write_json
from controlplane.embedded.ports import PortBook

PROJECT = Path(__file__).resolve().parents[2]
IN_CHECKOUT = (PROJECT / "manage.py").is_file()  # else the wheel is installed: its folder is for packages only
MARKER = ".headgate-home"
CACHE = "cache"


def default_home() -> Path:
    """HEADGATE_HOME, else `.headgate/` in the checkout, or without one in the user's home."""
    own = PROJECT / ".headgate" if IN_CHECKOUT else "~/.headgate"
    return Path(os.environ.get("HEADGATE_HOME") or own).expanduser().absolute()


def default_cache() -> Path:
    """Where downloads are kept, over all homes: HEADGATE_CACHE_DIR, else `cache` in `.headgate/`."""
    own = PROJECT / ".headgate" if IN_CHECKOUT else Path("~/.headgate")
    return Path(os.environ.get("HEADGATE_CACHE_DIR") or own / CACHE).expanduser().absolute()


def command(name: str) -> str:
    """What a person types."""
    return f"`make {name}`" if IN_CHECKOUT else f"`headgate {name}`"


class Home:
    """Names every file of a stack. `create()` marks the folder as ours; `remove()` deletes it, downloads aside."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser().absolute()
        self.logs = self.path / "logs"
        self.tasks = self.path / "tasks"
        self.segments = self.path / "segments"
        self.state_file = self.path / "state.json"
        self.ports = PortBook(self.path / "ports.json")

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    @property
    def is_ours(self) -> bool:
        return (self.path / MARKER).is_file()

    def create(self) -> None:
        """Raises HomeRefused when the folder holds somebody else's files."""
        if not self.is_ours and self.path.exists() and any(p.name != CACHE for p in self.path.iterdir()):
            raise HomeRefused(
                f"{self.path} is not empty and was not made by Headgate. Choose another folder with --home."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        # As root, PostgreSQL runs under another user, who must be able to pass through.
        self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for folder in (self.logs, self.tasks, self.segments):
            folder.mkdir(exist_ok=True, mode=0o700)
        if not self.is_ours:
            write_atomically(
                self.path / MARKER, f"State of an embedded Headgate stack. {command('clean')} deletes it.\n"
            )

    def secret(self, name: str, make: Callable[[], str] = lambda: secrets.token_hex(32)) -> str:
        """A password that is made once and kept, readable by nobody else."""
        path = self.path / "secrets.json"
        stored = read_json(path)
        if not isinstance(stored.get(name), str):
            stored[name] = make()
            write_json(path, stored)
        return str(stored[name])

    @property
    def outside(self) -> Path:
        """The folder used in place of this one for files that another user must reach when they could not here."""
        digest = hashlib.sha256(str(self.path).encode()).hexdigest()[:12]
        temporary = Path(tempfile.gettempdir())
        return (temporary if self.path.is_relative_to(temporary) else Path("/var/lib")) / f"headgate-{digest}"

    def create_outside(self) -> Path:
        """Makes `outside`, marked with this home's path. Raises HomeRefused when it is somebody else's."""
        if self.outside.exists() and not self._owns_outside():
            raise HomeRefused(
                f"{self.outside} exists and does not belong to {self.path}. Move it away, then try again."
            )
        self.outside.mkdir(exist_ok=True, mode=0o755)
        self.outside.chmod(0o755)
        write_atomically(self.outside / MARKER, f"{self.path}\n")
        return self.outside

    def _owns_outside(self) -> bool:
        entry = self.outside.lstat()
        if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.geteuid():
            return False
        try:
            return (self.outside / MARKER).read_text().strip() == str(self.path)
        except OSError:
            return not any(self.outside.iterdir())

    def remove(self) -> None:
        """Deletes all state. Raises HomeRefused when the folder does not look like ours."""
        if self.outside.exists() and self._owns_outside():
            shutil.rmtree(self.outside)
        if not self.path.exists():
            return
        if not self.is_ours:
            raise HomeRefused(f"{self.path} was not made by Headgate; nothing was deleted.")
        marker = self.path / MARKER
        for entry in [p for p in self.path.iterdir() if p.name not in (CACHE, MARKER)]:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        marker.unlink()
        if not any(self.path.iterdir()):
            self.path.rmdir()


@contextmanager
def temporary_home() -> Iterator[Home]:
    """A home that another user can reach (unlike pytest's tmp_path as root), deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="headgate-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o711 if os.geteuid() == 0 else 0o700)
        home = Home(folder)
        home.create()
        try:
            yield home
        finally:
            home.remove()
