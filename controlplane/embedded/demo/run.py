"""The demo from beginning to end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from controlplane.embedded import terminal
from controlplane.embedded.apps import login_password
from controlplane.embedded.demo import records, specs
from controlplane.embedded.demo.client import Client
from controlplane.embedded.demo.produce import ensure_topic, produce
from controlplane.embedded.demo.report import DatasourceReport, report_table
from controlplane.embedded.errors import DemoFailed, EmbeddedError
from controlplane.embedded.files import write_json
from controlplane.embedded.home import command
from controlplane.embedded.stack import Stack
from controlplane.embedded.waiting import poll_until

POLL_INTERVAL_S = 0.5
FOREVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class Ingestion:
    """What was produced and submitted: records per datasource, and the id of the task that ends by itself."""

    flights: int
    examples: int
    task: str


def run_demo(
    stack: Stack, *, topics_alone: bool, stop_at_end: bool, report_file: Path | None, deadline_s: float
) -> int:
    """0 when every count is right, 1 when not. Stops the stack at the end if this call started it.

    ``topics_alone``: the topics are written, and nothing is ingested. Raises DemoFailed without the demo's data.
    """
    records.flights_file()  # raises, before anything is started
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    started_at_s = time.monotonic()
    with terminal.start_up_bar() as show:
        started = stack.up(show)
    try:
        code = _load_and_report(stack, report_file, None if topics_alone else deadline_s, started_at_s)
        if not stop_at_end:
            _run_until_stopped(stack, started)
        return code
    except KeyboardInterrupt:
        return 130
    finally:
        if started:
            terminal.console.print("Stopping the stack …")
            stack.down()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _load_and_report(stack: Stack, report_file: Path | None, deadline_s: float | None, started_at_s: float) -> int:
    """Without a deadline nothing is ingested that it could be for."""
    try:
        report = _load(stack, deadline_s)
    except EmbeddedError as error:
        report = {"ok": False, "problems": [str(error)]}
    report["seconds"] = round(time.monotonic() - started_at_s, 1)
    if report_file:
        write_json(report_file.absolute(), report, mode=0o644)
    for problem in report["problems"]:
        terminal.error_console.print(problem, style="bold red", markup=False)
    return 0 if report["ok"] else 1


def _load(stack: Stack, deadline_s: float | None) -> dict[str, Any]:
    state = stack.state()
    flights, examples = records.FLIGHTS, len(records.EXAMPLE_RECORDS)
    _produce(state.bootstrap, specs.FLIGHTS_TOPIC, records.flights(), flights)
    _produce(state.bootstrap, specs.EXAMPLE_TOPIC, records.EXAMPLE_RECORDS, examples)
    if deadline_s is None:
        return {"ok": True, "problems": []}
    with Client(state.url, login_password(stack.home)) as client:
        client.submit_supervisor(specs.flights_supervisor(state.bootstrap))
        task = client.submit_task(specs.example_task(state.bootstrap))
        _wait_for_ingestion(stack, client, Ingestion(flights, examples, task), deadline_s)
        storage = stack.home.segments
        reports = {
            "flights": _report(client, specs.FLIGHTS_DATASOURCE, flights, storage),
            "seed": _report(client, specs.EXAMPLE_DATASOURCE, examples, storage),
        }
    terminal.console.print(report_table(list(reports.values())))
    problems = [problem for report in reports.values() for problem in report.problems()]
    return {**{key: report.as_json() for key, report in reports.items()}, "ok": not problems, "problems": problems}


def _report(client: Client, datasource: str, produced: int, storage: Path) -> DatasourceReport:
    return DatasourceReport.of(client.datasource(datasource), client.segments(datasource), produced, storage)


def _produce(bootstrap: str, topic: str, values: Iterable[bytes], total: int) -> None:
    ensure_topic(bootstrap, topic)
    with terminal.progress_bar(f"Producing {topic}", total) as (progress, task):
        produce(bootstrap, topic, values, total, lambda count: progress.update(task, completed=count))


def _wait_for_ingestion(stack: Stack, client: Client, ingestion: Ingestion, deadline_s: float) -> None:
    """Until all flights are published and the task has succeeded. Raises DemoFailed."""
    with terminal.progress_bar("Ingesting", ingestion.flights) as (progress, bar):

        def done() -> bool:
            rows = int(client.datasource(specs.FLIGHTS_DATASOURCE).get("rows", 0))
            status = client.task_status(ingestion.task)
            progress.update(bar, completed=rows, note=f"{rows:,} rows; example task: {status['status']}")
            if status["status"] == "FAILED":
                raise DemoFailed(f"The task {ingestion.task} failed: {status.get('errorMsg')}. {_where_to_look(stack)}")
            return rows >= ingestion.flights and status["status"] == "SUCCESS"

        try:
            poll_until(done, timeout_s=deadline_s, interval_s=POLL_INTERVAL_S)
        except TimeoutError:
            note = progress.tasks[0].fields["note"]
            raise DemoFailed(f"Not ingested within {deadline_s:g} s ({note}). {_where_to_look(stack)}") from None


def _where_to_look(stack: Stack) -> str:
    """The logs that tell why, the newest of an application first."""
    logs = sorted(stack.home.tasks.glob("*/*.log"), key=lambda log: log.stat().st_mtime, reverse=True)
    return "Read " + " and ".join(str(log) for log in (*logs[:1], stack.home.log("worker")))


def _run_until_stopped(stack: Stack, started: bool) -> None:
    terminal.show_address(stack.home, stack.state())
    if started:
        terminal.console.print("The stack runs until Ctrl-C.")
        with suppress(KeyboardInterrupt):
            poll_until(lambda: not stack.state().launcher_runs, timeout_s=FOREVER_S, interval_s=1.0)
    else:
        terminal.console.print(f"The stack ran before and goes on; {command('down')} stops it.")
