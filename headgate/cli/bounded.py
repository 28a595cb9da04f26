"""Commands that read given offsets: bounded reads and backfills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli import context
from headgate.cli.acting import Yes, confirm
from headgate.cli.errors import CommandFailed
from headgate.cli.manifests import read_one_spec
from headgate.cli.output import Form, plain, written
from headgate.cli.waiting import Seen, wait_for
from headgate.client import Client
from headgate.client.shapes import BackfillPlan, TaskDetail
from headgate.client.site import Place

From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="POSITION",
        help="earliest, a time such as 2026-11-27T09:00:00Z, or a duration before now such as PT30M.",
    ),
]
To = Annotated[str, typer.Option("--to", metavar="POSITION", help="Where to end, such as latest.")]
Ranges = Annotated[
    list[str] | None,
    typer.Option("--range", metavar="PARTITION=START:END", help="Offsets instead. Repeat it for several."),
]
TaskCount = Annotated[int | None, typer.Option("--task-count", min=1, help="How many indexers.", show_default=False)]
_RANGE = re.compile(r"([0-9]+)=([0-9]+):([0-9]+)")
_OF_SUPERVISORS = ("autoScalerConfig", "idleConfig", "replicas")
_BACKFILL_COLUMNS = ("id", "detailed_state", "task_count", "total", "done", "left", "percent", "seconds_left", "gap")


def read(
    file: Annotated[Path, typer.Option("-f", "--file", help="A supervisor's or a task's spec.")],
    from_: From = "",
    to: To = "",
    range_: Ranges = None,
    into: Annotated[str, typer.Option(metavar="DATASOURCE", help="Another datasource than the spec's.")] = "",
    task_count: TaskCount = None,
    wait: Annotated[bool, typer.Option(help="Follow the task until it ends.")] = True,
    output: context.Output = Form.table,
) -> None:
    """Read a part of a spec's topic once, as a task, and follow it. It goes on if you interrupt this command.

    Exit code 1 if the task fails.
    """
    start, end = _bounds(from_, to, range_)
    spec = bounded_spec(read_one_spec(file), start, end, into, task_count)
    with context.site() as client:
        task = client.submit_task(spec, team=context.options.team or None)
        if output is Form.table:
            typer.echo(_ranges(task))
            typer.echo(f"Task {task['id']} reads them.")
        if wait:
            task = _followed(client, task, is_shown=output is Form.table)
    if output is not Form.table:
        typer.echo(written(dict(task), output))
    if task["status"] == "FAILED":
        raise CommandFailed(f"task {task['id']}: {task['error']}")


def backfill(
    supervisor: context.Supervisor,
    skip: Annotated[bool, typer.Option("--skip", help="The supervisor goes on at the end of its topic.")] = False,
    from_: From = "",
    to: To = "",
    range_: Ranges = None,
    task_count: TaskCount = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would read.")] = False,
    output: context.Output = Form.table,
    yes: Yes = False,
) -> None:
    """Read beside a supervisor what it skips, or what is not settled between two positions or offsets."""
    if skip and (from_ or to or range_):
        raise CommandFailed("Give --skip, or --from and --to, or --range.")
    start, end = (None, None) if skip else _bounds(from_, to, range_)
    asked: dict[str, Any] = {"skip": skip, "start": start, "end": end, "task_count": task_count}
    with context.site() as client:
        plan = client.backfill(supervisor, **asked, dry_run=True)
        if output is Form.table or not (dry_run or yes):
            typer.echo(_preview(plan), err=output is not Form.table)
        if not dry_run:
            confirm(f"Begin this backfill of {supervisor}?", yes)
            plan = client.backfill(supervisor, **asked)
    if output is not Form.table:
        typer.echo(written(dict(plan), output))
    elif not dry_run:
        typer.echo(f"{plan['backfill']} reads {plan['left']:,} offsets.")


def backfills(supervisor: context.Supervisor, output: context.Output = Form.table) -> None:
    """List a supervisor's backfills and how far they are, newest first."""
    with context.site() as client:
        rows = [dict(row) for row in client.backfills(supervisor)]
    typer.echo(written(rows, output, _BACKFILL_COLUMNS))


def bounded_spec(
    spec: Mapping[str, Any], start: Place, end: Place, into: str, task_count: int | None
) -> dict[str, Any]:
    """A task that reads a part of what the spec reads. Raises ``CommandFailed``."""
    outer = {name: value for name, value in spec.items() if name not in ("id", "suspended")}
    if isinstance(outer.get("type"), str):
        outer["type"] = f"index_{outer['type'].removeprefix('index_')}"  # a task's
    is_nested = isinstance(outer.get("spec"), dict)
    parts = outer["spec"] if is_nested else outer
    if not isinstance(parts.get("ioConfig"), dict):
        raise CommandFailed("The file has no spec with an ioConfig.")
    _refuse_twice(spec, parts, into)
    io_config = {name: value for name, value in parts["ioConfig"].items() if name not in _OF_SUPERVISORS}
    io_config["boundedStreamConfig"] = {**_side("start", start), **_side("end", end)}
    if task_count is not None:
        io_config["taskCount"] = task_count
    changed = {**parts, "ioConfig": io_config}
    if into:
        schema = parts.get("dataSchema")
        changed["dataSchema"] = {**(schema if isinstance(schema, dict) else {}), "dataSource": into}
    return {**outer, "spec": changed} if is_nested else changed


def _refuse_twice(spec: Mapping[str, Any], parts: Mapping[str, Any], into: str) -> None:
    """The stored offsets of a task are those of its datasource's name, and not those of the supervisor's id."""
    schema = parts.get("dataSchema")
    datasource = schema.get("dataSource") if isinstance(schema, dict) else None
    in_share_group = "share_group" in f"{spec.get('type')} {parts['ioConfig'].get('type')}"
    if spec.get("id") in (None, datasource) or into or in_share_group:
        return
    raise CommandFailed(
        f"The spec is of supervisor {spec['id']}. A task would store in {datasource} again what this supervisor has "
        f"stored. Use: headgate backfill {spec['id']}. Or give --into for another datasource."
    )


def _side(name: str, place: Place) -> dict[str, Any]:
    if isinstance(place, str):
        return {f"{name}Position": place}
    return {f"{name}SequenceNumbers": {str(partition): offset for partition, offset in place.items()}}


def _bounds(from_: str, to: str, ranges: list[str] | None) -> tuple[Place, Place]:
    if ranges and not (from_ or to):
        found = [offset_range(text) for text in ranges]
        if len({partition for partition, _, _ in found}) < len(found):
            raise CommandFailed("--range names a partition twice.")
        return {p: start for p, start, _ in found}, {p: end for p, _, end in found}
    if ranges or not (from_ and to):
        raise CommandFailed("Give --from and --to, or --range.")
    return from_, to


def offset_range(text: str) -> tuple[int, int, int]:
    """Partition, start and end of a ``--range``. Raises ``CommandFailed``."""
    found = _RANGE.fullmatch(text)
    if found is None:
        raise CommandFailed(f"--range is {text!r}. Write PARTITION=START:END, such as 0=1500:2000.")
    return int(found[1]), int(found[2]), int(found[3])


def _ranges(task: TaskDetail) -> str:
    """The offsets of a bounded read as a table."""
    bounds = task["spec"]["spec"]["ioConfig"]["boundedStreamConfig"]
    starts, ends = bounds["startSequenceNumbers"], bounds["endSequenceNumbers"]
    rows = [{"partition": p, "start": starts[p], "end": ends[p]} for p in sorted(starts, key=int)]
    return written(rows, Form.table, ("partition", "start", "end"))


def _preview(plan: BackfillPlan) -> str:
    rows = written(plan["partitions"], Form.table, ("partition", "start", "end", "unsettled"))
    return f"{rows}\nReads {plan['left']:,} offsets with {plan['task_count']:,} indexers."


def _followed(client: Client, task: TaskDetail, is_shown: bool) -> TaskDetail:
    """The task when it has ended. Each change of its progress is printed."""
    last, text = task, ""

    def look() -> Seen:
        nonlocal last, text
        last = client.task(task["id"])
        if is_shown and _progress(last) != text:
            text = _progress(last)
            typer.echo(plain(text))
        return Seen(text, done=last["status"] in ("SUCCESS", "FAILED"))

    wait_for(look, inf)
    return last


def _progress(task: TaskDetail) -> str:
    progress = task["progress"]
    if progress is None:
        return task["status"]
    seconds = progress["seconds_left"]
    left = f", {timedelta(seconds=seconds)} left" if seconds else ""
    return f"{task['status']}: {progress['percent']}% of {progress['total']:,} offsets{left}"
