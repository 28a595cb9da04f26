"""What the commands show on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from controlplane.embedded import apps
from controlplane.embedded.home import Home
from controlplane.embedded.stack import OnState
from controlplane.embedded.state import StackState, is_up

console = Console(highlight=False, soft_wrap=True)
error_console = Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(label: str, total: float | None) -> Iterator[tuple[Progress, TaskID]]:
    """A bar on a terminal; elsewhere one line at the beginning and one at the end."""
    if not console.is_terminal:
        console.print(f"{label} …")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield progress, progress.add_task(label, total=total, note="")


@contextmanager
def start_up_bar() -> Iterator[OnState]:
    """Shows the launcher's steps."""
    with progress_bar("Starting the stack", None) as (progress, task):

        def show(state: StackState) -> None:
            if state.steps_total:
                progress.update(task, total=state.steps_total, completed=state.steps_done, note=state.step)

        yield show


def show_address(home: Home, state: StackState) -> None:
    console.print(f"Headgate: {state.url}   login: {apps.LOGIN_USER}   password: {apps.login_password(home)}")


def show_ports(state: StackState) -> None:
    ports = [f"{service.name} {service.port}" for service in state.services if service.port]
    console.print(f"Ports on 127.0.0.1: {', '.join(ports)}")


def status_table(state: StackState) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("service", "state", "pid", "port", "restarts", "log"):
        table.add_column(column, justify="right" if column in ("pid", "port", "restarts") else "left", overflow="fold")
    for service in state.services:
        pid = str(service.process.pid) if service.process and service.process.find() else "-"
        cells = (service.name, shown_state(state, service.name), pid, str(service.port or "-"))
        table.add_row(*cells, str(service.restarts), _relative_path(service.log))
    return table


def _relative_path(path: str) -> str:
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def shown_state(state: StackState, name: str) -> str:
    """The service's state as it is now, whatever a killed launcher last wrote."""
    service = next(service for service in state.services if service.name == name)
    if state.launcher_runs:
        return "crashed" if service.state == "running" and not is_up(service) else service.state
    return "orphaned" if service.process and service.process.find() else "stopped"
