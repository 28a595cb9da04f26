"""Commands that change nothing."""

from __future__ import annotations

import json
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli import context
from headgate.cli.errors import CommandFailed
from headgate.cli.kinds import KINDS, kind_of, listed, one_of
from headgate.cli.log_tail import new_text
from headgate.cli.manifests import read_one_spec
from headgate.cli.output import Form, cell, plain, table, written
from headgate.client import Client, ClientError, NotFound

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help=", ".join(k.name for k in KINDS), show_default=False)]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
POLL_S = 2.0
ENDED = ("SUCCESS", "FAILED")


def get(
    kind: KindArgument,
    name: Annotated[str | None, typer.Argument(show_default=False)] = None,
    output: context.Output = Form.table,
    search: Annotated[str, typer.Option(help="Only those with this text in their name.")] = "",
    limit: Limit = 1000,
) -> None:
    """List objects of a kind, or print one."""
    chosen = kind_of(kind)
    with context.site() as client:
        if name is not None:
            _, found = one_of(client, chosen, name, context.options.team)
            typer.echo(written([found] if output is Form.table else found, output, chosen.columns))
            return
        filters = {"search": search} if search else {}
        rows = list(islice(listed(client, chosen, context.options.team, **filters), limit))
        typer.echo(written(rows, output, chosen.columns))


def describe(kind: KindArgument, name: str, output: context.Output = Form.yaml) -> None:
    """Print all of one object: its spec, its state and the cause of the state."""
    chosen = kind_of(kind)
    with context.site() as client:
        path, found = one_of(client, chosen, name, context.options.team)
        for part in chosen.more:
            try:
                found[part] = client.get(f"{path}{part}/")
            except NotFound:
                found[part] = None
    typer.echo(written(found, Form.yaml if output is Form.table else output))


def sample(
    file: Annotated[Path, typer.Option("-f", "--file", help="A spec, finished or not.")],
    output: context.Output = Form.table,
) -> None:
    """Show the rows that a spec would make of some records of its topic or files. Stores nothing."""
    spec = read_one_spec(file)
    with context.site() as client:
        answer = client.sample(spec)
    if output is not Form.table:
        typer.echo(written(answer, output))
        return
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in answer["outcomes"].items())
    typer.echo(f"Records: {outcomes or 'none'}")
    names = [column["name"] for column in answer["columns"]]
    rows = [record["row"] for record in answer["records"] if record["row"] is not None]
    typer.echo(table(names, [[_short(row.get(name)) for name in names] for row in rows]) if rows else "No rows.")
    for error in sorted({record["error"] for record in answer["records"] if record["error"]}):
        typer.echo(plain(f"Error: {error}"))


def _short(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


def logs(
    name: Annotated[str, typer.Argument(metavar="TASK|SUPERVISOR", show_default=False)],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new lines until the task ends.")] = False,
) -> None:
    """Print the end of a task's log; of a supervisor that of its current task."""
    with context.site() as client:
        task = _task_of(client, name)
        shown = ""
        while True:
            ended = client.task(task)["status"] in ENDED  # before the log: nothing comes after it
            text = client.task_log(task)
            typer.echo(plain(new_text(shown, text)), nl=False)
            if ended or not follow:
                return
            shown = text
            time.sleep(POLL_S)


def _task_of(client: Client, name: str) -> str:
    try:
        client.task(name)
    except NotFound:
        supervisor = client.supervisor(name)
        if supervisor["current_task"] is None:
            newest = next(client.tasks(supervisor=name), None)
            if newest is None:
                raise CommandFailed(f"Supervisor {name} has no task yet.") from None
            return newest["id"]
        return supervisor["current_task"]
    return name


def record(
    topic: str,
    partition: Annotated[int, typer.Argument(min=0)],
    offset: Annotated[int, typer.Argument(min=0)],
    group: Annotated[str, typer.Option(help="Only what this reader did.")] = "",
    output: context.Output = Form.table,
) -> None:
    """Say what happened to one record."""
    with context.site() as client:
        found = client.record(topic, partition, offset, group or None)
    if output is not Form.table:
        typer.echo(written(dict(found), output))
        return
    for fate in found["fates"]:
        place = f"{fate['source']['datasource']}, {fate['source']['group']}"
        typer.echo(plain(f"{fate['outcome']}  ({place})\n  {fate['explanation']}"))
        for segment in fate["segments"]:
            typer.echo(plain(f"  segment {segment['identifier']}"))
        if fate["error"]:
            typer.echo(plain(f"  {fate['error']}"))
    if not found["fates"]:
        typer.echo("Nothing is known of this record: no datasource that you may see reads it.")


def sql(
    query: Annotated[str, typer.Argument(help="One SELECT; - reads it from the standard input.")],
    output: context.Output = Form.table,
) -> None:
    """Run one SELECT over datasources."""
    with context.site() as client:
        text = sys.stdin.read() if query == "-" else query
        answer = client.send("POST", "/api/v1/sql/", {"query": text})
    if output is not Form.table or "rows" not in answer:  # EXPLAIN has none
        typer.echo(written(answer, Form.yaml if output is Form.table else output))
        return
    rows = [[cell({"value": value}, "value") for value in row] for row in answer["rows"]]
    typer.echo(table([column["name"] for column in answer["columns"]], rows))
    if answer["truncated"]:
        typer.echo(f"There are more than these {answer['row_count']:,} rows.", err=True)
    if answer["masked"]:
        typer.echo(plain(f"Masked for you, so NULL: {', '.join(answer['masked'])}."), err=True)


def quarantine(
    datasource: str,
    reason: Annotated[str, typer.Option(help="Only those with this reason.")] = "",
    cause: Annotated[str, typer.Option(help="Only those with this cause.")] = "",
    state: Annotated[str, typer.Option(help="Only those in this state.")] = "",
    limit: Limit = 100,
    output: context.Output = Form.table,
) -> None:
    """List quarantined records of a datasource, newest first."""
    filters = {name: value for name, value in (("reason", reason), ("cause", cause), ("state", state)) if value}
    with context.site() as client:
        rows = [dict(row) for row in islice(client.quarantined(datasource, **filters), limit)]
    typer.echo(written(rows, output, ("id", "partition", "offset", "place", "state", "reason", "cause", "error")))


def user_name(client: Client) -> str:
    """The user's name, which shows that the token is good. Raises ``ClientError``."""
    account = client.get("/api/v1/account/")
    if not isinstance(account, dict) or "username" not in account:
        raise ClientError(f"{client.url} does not answer like Headgate.")
    return str(account["username"])
