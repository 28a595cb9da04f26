"""What a cluster's manager says: its cores, the applications that have or want some, and the drivers there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Application:
    """An application that the cluster knows."""

    name: str  # the task's id, of one of ours
    cores: int  # how many it has
    waiting: bool  # it wants its first ones
    submitted_at_ms: int
    executor_mb: int = 0


@dataclass(frozen=True)
class Driver:
    """A driver that runs, or ran, on the cluster."""

    state: str  # SUBMITTED while it waits for a core
    worker_web: str = ""  # the page of the worker that has it, or that of its container; on Kubernetes that one's name
    reason: str = ""  # why it waits or has ended, as the manager says
    cannot_start: bool = False  # it waits for what people must mend

    @property
    def has_ended(self) -> bool:
        return self.state in ("FINISHED", "KILLED", "FAILED", "ERROR")


@dataclass(frozen=True)
class Cluster:
    """What a cluster has, and what of it is in use."""

    cores: int  # of workers that are alive
    used: int  # of these cores
    worker_mb: int = 0  # of the largest worker
    applications: Sequence[Application] = ()  # those that have not ended
    drivers: Mapping[str, Driver] = field(default_factory=dict)  # by id, also some that have ended
    knows_cores: bool = True  # else ``cores``, ``used`` and ``applications`` say nothing

    @property
    def free(self) -> int:
        return max(0, self.cores - self.used)

    def would_get_cores(self, name: str, ends: Sequence[str]) -> bool:
        """Whether an application that waits would get cores if those in ``ends`` gave back theirs: the master serves
        who came first.
        """
        application = next((a for a in self.applications if a.name == name), None)
        if application is None or not any(a.cores for a in self.applications if a.name in ends):
            return False
        before = [a for a in self.applications if a.waiting and a.submitted_at_ms < application.submitted_at_ms]
        return not any(a.executor_mb <= self.worker_mb for a in before)
