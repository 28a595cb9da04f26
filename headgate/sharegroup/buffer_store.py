"""The buffer location: files of records, who may write them, and what is known of them after a crash.

::

    claims/<epoch>-<random>             one for each start of a query; the greatest name owns the location
    files/<number>-<claim>.arrow        polled records; the schema's metadata says which offsets it settles
    state/<claim>-<serial>.json         settled offsets and files, written before a file is deleted
    rejected/<number>-<claim>.parquet   poison records
    owner.json                          a sign of life

A claim is made before the files are listed, and a reader looks for greater claims after it wrote a file and before it
acknowledges its records. So whatever an older owner has acknowledged is in the listing of the newer one, on any storage
whose listings show what was written before; nothing there needs to be written on a condition.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import InUse
from headgate.folders import Folder

BEAT_S = 2.0
SILENCE_S = 8.0  # of an owner on another host, before it is taken to be dead
_OWNER = "owner.json"
Settled = dict[str, list[tuple[int, int]]]  # half-open ranges by topic id and partition: "<id>/<partition>"


@dataclass(frozen=True)
class BufferFile:
    """One poll."""

    number: int
    name: str
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class State:
    """What a location holds, as of one moment."""

    store: str  # made with the location: a checkpoint of another one is told from it
    topics: dict[str, str]  # ids by name
    settled: Settled
    files: list[BufferFile]
    voids: list[int]  # numbers that were given out and came to nothing
    done: int  # files with lower numbers were committed
    next: int

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, content: bytes) -> State:
        fields = json.loads(content)
        files = [BufferFile(**f) for f in fields.pop("files")]
        settled = {key: [(a, b) for a, b in ranges] for key, ranges in fields.pop("settled").items()}
        return cls(files=files, settled=settled, **fields)


def empty_state() -> State:
    """Of a location that is used for the first time."""
    return State(uuid.uuid4().hex, {}, {}, [], [], 0, 0)


def file_name(number: int, claim: str) -> str:
    return f"{number:012d}-{claim}.arrow"


@dataclass
class Store:
    """A location that this process owns, until somebody claims it after it."""

    place: Folder
    claim: str
    _serial: int = field(default=0)

    def is_owned(self) -> bool:
        """Whether nobody has claimed it since."""
        return is_owner(self.place, self.claim)

    def beat(self) -> None:
        """Say that this process lives."""
        self.place.write(_OWNER, json.dumps({"claim": self.claim, "at": time.time(), **_process()}).encode())

    def leave(self) -> None:
        """Say that it needs the location no more."""
        if self.is_owned():
            self.place.delete(_OWNER)

    def save(self, state: State) -> None:
        """Write the state, and forget the one before the last."""
        self.place.write(f"state/{self.claim}-{self._serial:08d}.json", state.encoded())
        self._serial += 1

    def forget_older_states(self) -> None:
        """All but the newest, which must have been kept by this owner."""
        newest = f"{self.claim}-{self._serial - 1:08d}.json"
        for name in self.place.sizes("state"):
            if name < newest:
                self.place.delete(f"state/{name}")

    def read_file(self, number: int) -> tuple[BufferFile, Settled] | None:
        """A file that a reader may or may not have written whole."""
        return inspect_file(self.place, file_name(number, self.claim))


def is_owner(folder: Folder, claim: str) -> bool:
    return max(folder.sizes("claims"), default="") == claim


def claim_location(folder: Folder, patience_s: float = SILENCE_S) -> tuple[Store, State]:
    """Claim a location and find out what is in it. Raises ``InUse`` when its owner lives."""
    _await_silence(folder, patience_s)
    epoch = max((int(name.partition("-")[0]) for name in folder.sizes("claims")), default=0) + 1
    store = Store(folder, f"{epoch:08d}-{uuid.uuid4().hex[:12]}")
    folder.write(f"claims/{store.claim}", json.dumps(_process()).encode())
    if not store.is_owned():
        raise InUse("another query has just claimed this buffer location")
    store.beat()
    state = _read_state(folder)
    store.save(state)
    for name in folder.sizes("claims"):
        if name < store.claim:
            folder.delete(f"claims/{name}")
    _sweep(folder, {f.name for f in state.files})
    store.forget_older_states()
    return store, state


def _read_state(folder: Folder) -> State:
    for name in sorted(folder.sizes("state"), reverse=True):
        try:
            state = State.decoded(folder.read(f"state/{name}").to_pybytes())
        except ValueError:
            continue  # a storage that shows what is half written: it was not used before it was whole
        return _with_newer_files(folder, state, claim=name.rpartition("-")[0])
    return empty_state()


def _with_newer_files(folder: Folder, state: State, claim: str) -> State:
    """The state, and what was written after it by the owner who wrote it."""
    known_names = {f.name for f in state.files}
    names = [
        n for n in folder.sizes("files") if n.removesuffix(".arrow").partition("-")[2] == claim and n not in known_names
    ]
    newer = [n for n in names if _number(n) >= state.done and _number(n) not in state.voids]
    with ThreadPoolExecutor(16) as pool:
        inspected = [file for file in pool.map(lambda n: inspect_file(folder, n), sorted(newer)) if file]
    settled = {key: list(ranges) for key, ranges in state.settled.items()}
    for _, more in inspected:
        for key, ranges in more.items():
            settled.setdefault(key, []).extend(ranges)
    files = sorted([*state.files, *(f for f, _ in inspected)], key=lambda f: f.number)
    following = max([state.next, *(f.number + 1 for f in files)])
    return State(state.store, state.topics, settled, files, [], state.done, following)


def inspect_file(folder: Folder, name: str) -> tuple[BufferFile, Settled] | None:
    """None for one that is not there, or not whole."""
    try:
        with folder.open(f"files/{name}") as file:
            reader = pa.ipc.open_file(file)
            metadata = reader.schema.metadata
            size = file.size()
            settled = json.loads(metadata[b"settles"])
            buffer_file = BufferFile(_number(name), name, int(metadata[b"rows"]), size)
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return buffer_file, {key: [(a, b) for a, b in ranges] for key, ranges in settled.items()}


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _sweep(folder: Folder, named: Iterable[str]) -> None:
    """Files that no state names: those of owners whose time was over, and those that were committed."""
    for name in folder.sizes("files").keys() - set(named):
        folder.delete(f"files/{name}")


def _await_silence(folder: Folder, patience_s: float) -> None:
    """Return when no owner lives: it left, or its process is gone, or nothing was heard of it for a while."""
    first_owner = _owner(folder)
    end = time.monotonic() + patience_s
    while (owner := _owner(folder)) is not None and not _is_dead(owner):
        if time.monotonic() > end:
            if first_owner is not None and owner["at"] == first_owner["at"]:
                return
            where = f"process {owner['pid']} on {owner['host']}"
            raise InUse(f"this buffer location is in use by another query ({where}): each query needs one of its own")
        time.sleep(0.2)


def _owner(folder: Folder) -> dict[str, Any] | None:
    try:
        owner: dict[str, Any] = json.loads(folder.read(_OWNER).to_pybytes())
    except (FileNotFoundError, ValueError):
        return None
    return owner


def _process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}


def _is_dead(owner: dict[str, Any]) -> bool:
    """So only for certain: on this host, with no such process any more."""
    return bool(
        owner["host"] == socket.gethostname() and owner["started"] and _started(owner["pid"]) != owner["started"]
    )


def _started(pid: int) -> str:
    """When a process of this machine started, in the kernel's ticks; empty when there is none, or no way to know."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]
