"""What a program asks of a site. Every method raises ``ClientError``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

import httpx2

from headgate.client import shapes
from headgate.client.errors import ClientError
from headgate.client.session import Request, Session

TEAM_HEADER = "X-Headgate-Team"
V1 = "/api/v1/"
Place = str | Mapping[int, int]  # in a topic: a position, or offsets by partition


def path_of(*parts: str | int) -> str:
    """An address under ``/api/v1/``; each part is escaped."""
    return V1 + "".join(f"{quote(str(part), safe='')}/" for part in parts)


class Client:
    """One site as one user. ``url`` and ``token`` are ``HEADGATE_URL`` and ``HEADGATE_TOKEN`` unless they are given.

    It repeats what failed in passing only if the site then does nothing twice: reading, and what has a ``key``. A key
    is any text of up to 200 characters, such as a run's id: with the same key the site answers as the first time.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        transport: httpx2.BaseTransport | None = None,
        timeout_s: float = 60.0,
        attempts: int = 3,
    ) -> None:
        url = url or os.environ.get("HEADGATE_URL", "")
        token = token or os.environ.get("HEADGATE_TOKEN", "")
        if not url:
            raise ClientError("There is no site. Give url, or set HEADGATE_URL.")
        self._session = Session(url, token, transport=transport, timeout_s=timeout_s, attempts=attempts)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    @property
    def url(self) -> str:
        return self._session.url

    # Any address

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at an address such as ``/api/v1/overview/``."""
        return self._session.json(Request("GET", path, query))

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page after page."""
        return self._session.pages(Request("GET", path, {"limit": 500, **query}))

    def text(self, path: str, **query: Any) -> str:
        """An answer that is plain text."""
        return str(self._session.send(Request("GET", path, query)).text)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        team: str | None = None,
        version: int | None = None,
        key: str = "",
    ) -> Any:
        """Send a change. ``version``: the one that it is for, 0 for what does not exist yet; another one raises
        ``ChangedMeanwhile``.
        """
        headers = {TEAM_HEADER: team} if team else {}
        if version is not None:
            headers |= {"If-Match": f'"{version}"'} if version else {"If-None-Match": "*"}
        return self._session.json(Request(method, path, query or {}, body, headers, key))

    # Supervisors

    def supervisors(self, **filters: Any) -> Iterator[shapes.Supervisor]:
        """``search``, ``state``, ``health``, ``team``, ``terminated``."""
        return cast("Iterator[shapes.Supervisor]", self.pages(path_of("supervisors"), **filters))

    def supervisor(self, name: str) -> shapes.SupervisorDetail:
        return cast("shapes.SupervisorDetail", self.get(path_of("supervisors", name)))

    def plan_supervisor(self, spec: Mapping[str, Any], *, team: str | None = None) -> shapes.SpecPlan:
        """What submitting the spec would change. It fails as the submission would."""
        return cast("shapes.SpecPlan", self.send("POST", path_of("supervisors", "-", "plan"), spec, team=team))

    def submit_supervisor(
        self,
        spec: Mapping[str, Any],
        *,
        team: str | None = None,
        version: int | None = None,
        restart: bool = False,
        key: str = "",
    ) -> shapes.SupervisorDetail:
        """Create a supervisor, or give it a new spec version. ``restart``: its tasks hand off although the spec is
        unchanged.
        """
        query = {"skipRestartIfUnmodified": not restart}
        answer = self.send("POST", path_of("supervisors"), spec, query=query, team=team, version=version, key=key)
        return cast("shapes.SupervisorDetail", answer)

    def act(self, name: str, action: str, body: Any = None) -> shapes.SupervisorDetail:
        """``suspend``, ``resume``, ``terminate`` or ``handoff`` a supervisor."""
        return cast("shapes.SupervisorDetail", self.send("POST", path_of("supervisors", name, action), body))

    def preview_reset(self, name: str, position: str) -> shapes.ResetPlan:
        """What a reset to a position would do to each partition."""
        return cast("shapes.ResetPlan", self.get(path_of("supervisors", name, "reset"), position=position))

    def reset(
        self,
        name: str,
        *,
        partitions: Mapping[int, int] | None = None,
        position: str | None = None,
        topics: Mapping[str, Mapping[int, int]] | None = None,
    ) -> shapes.SupervisorDetail:
        """Set stored offsets: of some partitions, or all to a position. Without both, delete all.

        ``position``: ``earliest``, ``latest``, a time with a zone, or a duration before now. ``topics``: the offsets by
        topic that its preview has shown; the site stores these instead of asking Kafka again.
        """
        body: dict[str, Any] = {}
        if partitions is not None:
            body["partitions"] = {str(number): offset for number, offset in partitions.items()}
        if position is not None:
            body["position"] = position
        if topics is not None:
            body["topics"] = {t: {str(number): o for number, o in offsets.items()} for t, offsets in topics.items()}
        return self.act(name, "reset", body)

    def backfills(self, name: str) -> list[shapes.Backfill]:
        """Those of a supervisor, newest first."""
        return cast("list[shapes.Backfill]", self.get(path_of("supervisors", name, "backfills"))["backfills"])

    def backfill(
        self,
        name: str,
        *,
        skip: bool = False,
        start: Place | None = None,
        end: Place | None = None,
        task_count: int | None = None,
        dry_run: bool = False,
    ) -> shapes.BackfillPlan:
        """Begin a backfill of what the supervisor skips, or of what is not settled from ``start`` to ``end``.

        ``dry_run``: only answer what it would read.
        """
        body = {"skip": skip, "dry_run": dry_run, **_side("start", start), **_side("end", end)}
        if task_count is not None:
            body["task_count"] = task_count
        return cast("shapes.BackfillPlan", self.send("POST", path_of("supervisors", name, "backfills"), body))

    def rewinds(self, name: str) -> list[shapes.Rewind]:
        """Those of a supervisor, newest first."""
        return cast("list[shapes.Rewind]", self.get(path_of("supervisors", name, "rewinds"))["rewinds"])

    def rewind(self, name: str, **choice: Any) -> shapes.RewindPlan:
        """Read stored records again, and replace the segments that they are in.

        ``choice``: ``spec_version``, ``published_from``, ``published_until``, ``start_offsets``, ``end_offsets``,
        ``of_rewind``, or ``rows_from`` and ``rows_until``; ``read_with``, ``others``, ``only_possible``, ``dry_run``,
        ``preview``.
        """
        return cast("shapes.RewindPlan", self.send("POST", path_of("supervisors", name, "rewinds"), choice))

    def undo_rewind(self, name: str, rewind: int) -> shapes.Rewind:
        """Put its old segments back into use in place of its own."""
        answer = self.send("POST", path_of("supervisors", name, "rewinds", "undo"), {"rewind": rewind})
        return cast("shapes.Rewind", answer)

    def cancel_rewind(self, name: str, rewind: int) -> shapes.Rewind:
        """Leave its parts that wait."""
        answer = self.send("POST", path_of("supervisors", name, "rewinds", "cancel"), {"rewind": rewind})
        return cast("shapes.Rewind", answer)

    # Tasks

    def tasks(self, **filters: Any) -> Iterator[shapes.Task]:
        """Newest first; ``status``, ``kind``, ``datasource``, ``supervisor``, ``search``."""
        return cast("Iterator[shapes.Task]", self.pages(path_of("tasks"), **filters))

    def task(self, name: str) -> shapes.TaskDetail:
        return cast("shapes.TaskDetail", self.get(path_of("tasks", name)))

    def submit_task(self, spec: Mapping[str, Any], *, team: str | None = None, key: str = "") -> shapes.TaskDetail:
        """Start a task. With a ``key`` a repeated call starts no second one."""
        return cast("shapes.TaskDetail", self.send("POST", path_of("tasks"), spec, team=team, key=key))

    def stop_task(self, name: str, *, finish: bool = True) -> shapes.Task:
        """``finish``: it publishes what it holds first."""
        return cast("shapes.Task", self.send("POST", path_of("tasks", name, "stop"), {"finish": finish}))

    def task_log(self, name: str) -> str:
        """The last 64 KiB."""
        return self.text(path_of("tasks", name, "log"))

    # Data

    def datasources(self, **filters: Any) -> Iterator[shapes.Datasource]:
        """``search``, ``team``."""
        return cast("Iterator[shapes.Datasource]", self.pages(path_of("datasources"), **filters))

    def datasource(self, name: str) -> shapes.Datasource:
        return cast("shapes.Datasource", self.get(path_of("datasources", name)))

    def completeness(self, datasource: str) -> shapes.Completeness:
        return cast("shapes.Completeness", self.get(path_of("datasources", datasource, "completeness")))

    def quarantined(self, datasource: str, **filters: Any) -> Iterator[shapes.Quarantined]:
        """Newest first; ``reason``, ``cause``, ``state``, ``topic``, ``partition``, ``task``."""
        found = self.pages(path_of("datasources", datasource, "quarantine"), **filters)
        return cast("Iterator[shapes.Quarantined]", found)

    def record(self, topic: str, partition: int, offset: int, group: str | None = None) -> shapes.Record:
        """What happened to a record."""
        found = self.get(path_of("records"), topic=topic, partition=partition, offset=offset, group=group)
        return cast("shapes.Record", found)

    def sample(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The rows that an unfinished spec would make of some records."""
        return cast("dict[str, Any]", self.send("POST", path_of("sampler"), spec))


def _side(name: str, place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    if isinstance(place, str):
        return {f"{name}_position": place}
    return {f"{name}_offsets": {str(partition): offset for partition, offset in place.items()}}
