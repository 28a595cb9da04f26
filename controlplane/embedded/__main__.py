"""`python -m controlplane.embedded COMMAND`: the commands behind `make up`, `down`, `status`, `clean` and `demo`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from controlplane.common.applications import SPARES, running_applications, stop_timeout_s
from controlplane.embedded import apps, terminal
from controlplane.embedded.errors import EmbeddedError
from controlplane.embedded.home import IN_CHECKOUT, Home, command, default_home
from controlplane.embedded.jvm import require_prerequisites
from controlplane.embedded.kafka_jars import kafka_jars
from controlplane.embedded.launcher import Launcher
from controlplane.embedded.spark_classes import prepare_classes
from controlplane.embedded.stack import Stack
from controlplane.embedded.state import StackState

NOT_ALL_RUN = 3
_SUMMARY = {"stopped": f"Stopped. {command('up')} starts it again, with its data.", "starting": "Starting."}


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(
        prog="python -m controlplane.embedded" if IN_CHECKOUT else "headgate", description=__doc__
    )
    commands.add_argument(
        "--home", type=Path, default=default_home(), help="folder of all state (default: %(default)s)"
    )
    sub = commands.add_subparsers(dest="command", required=True)
    sub.add_parser("up", help="start the stack, or find the one that runs")
    sub.add_parser("down", help="stop it; its data stays")
    status = sub.add_parser("status", help="what runs; exit code 3 when not everything does")
    status.add_argument("--json", action="store_true", help="as JSON")
    sub.add_parser("clean", help="stop it and delete its data; downloads stay")
    manage = sub.add_parser("manage", help="a command of manage.py, on the stack that runs: logins, damage, orphans")
    manage.add_argument("rest", nargs=argparse.REMAINDER, metavar="COMMAND", help="with its options")
    sub.add_parser("run", help="the launcher itself, in the foreground")
    sub.add_parser("jars", help="download Kafka and make the file of Spark's classes, unless they are there")
    demo = sub.add_parser("demo", help="start it, load real data, ingest it, show the result")
    demo.add_argument("--topics", action="store_true", help="write its topics alone: the rest is done on the pages")
    demo.add_argument("--exit", action="store_true", help="stop at the end; exit code 0 only if every count is right")
    demo.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    demo.add_argument(
        "--deadline", type=float, default=300.0, metavar="S", help="seconds for the ingestion (%(default)g)"
    )
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    home = Home(options.home)
    try:
        return run(options, home)
    except EmbeddedError as error:
        terminal.error_console.print(str(error), style="bold red", markup=False)
        return 1
    except KeyboardInterrupt:
        terminal.error_console.print("interrupted")
        return 130


def run(options: argparse.Namespace, home: Home) -> int:
    stack = Stack(home)
    if options.command in ("up", "run", "demo"):
        require_prerequisites()
    match options.command:
        case "up":
            return up(stack)
        case "down":
            return down(stack)
        case "status":
            return status(stack, as_json=options.json)
        case "clean":
            stack.clean()
            terminal.console.print(f"Removed the state in {home.path}.")
            return 0
        case "manage":
            return manage(home, stack.state(), options.rest)
        case "run":
            return Launcher(home).run()
        case "jars":
            with tempfile.TemporaryDirectory() as logs:
                kafka_jars(Path(logs) / "ivy.log")
                prepare_classes(Path(logs) / "spark-classes.log")
            return 0
        case _:
            from controlplane.embedded.demo.run import run_demo  # not at the top: it loads Arrow, for no other command

            return run_demo(
                stack,
                topics_alone=options.topics,
                stop_at_end=options.exit,
                report_file=options.json,
                deadline_s=options.deadline,
            )


def manage(home: Home, state: StackState, arguments: list[str]) -> int:
    """A command of manage.py with the environment of the stack, which must run."""
    if not state.all_run:
        raise EmbeddedError(f"The stack does not run; {command('up')} starts it.")
    return apps.manage(home, {s.name: s.port for s in state.services if s.port}, arguments)


def up(stack: Stack) -> int:
    with terminal.start_up_bar() as show:
        started = stack.up(show)
    if not started:
        terminal.console.print("The stack runs already.")
        terminal.console.print(terminal.status_table(stack.state()))
    terminal.show_ports(stack.state())
    terminal.show_address(stack.home, stack.state())
    return 0


def down(stack: Stack) -> int:
    running = running_applications(stack.home.tasks)
    if tasks := [name for name, _ in running if not name.startswith(SPARES)]:  # those that wait have no task
        terminal.console.print(f"Tasks that run: {len(tasks)}. They end in order, within {stop_timeout_s()} s …")
    terminal.console.print("Stopped." if stack.down() else "Nothing was running.")
    return 0


def status(stack: Stack, *, as_json: bool) -> int:
    state = stack.state()
    if as_json:
        print(json.dumps({**asdict(state), "all_run": state.all_run}))
    elif not state.services:
        terminal.console.print(f"Nothing runs. {command('up')} starts the stack.")
    else:
        terminal.console.print(terminal.status_table(state))
        if state.all_run:
            terminal.show_address(stack.home, state)
        else:
            terminal.console.print(state.error or _SUMMARY.get(state.phase, "Not all run."), markup=False)
    return 0 if state.all_run else NOT_ALL_RUN


if __name__ == "__main__":
    sys.exit(main())
