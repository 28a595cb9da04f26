"""The whole of Headgate on this machine: the commands of the embedded stack, which the extra ``server`` brings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import typer

from headgate.cli.errors import CommandFailed, Ended

REST_OF_LINE = {"ignore_unknown_options": True, "allow_extra_args": True}  # the stack has options of its own
_HELP = {
    "up": "Start all of Headgate on this machine, or find what runs.",
    "down": "Stop it. Its data stays.",
    "status": "Say what runs. Exit code 3 when not everything does.",
    "demo": "Start it, ingest real data and show the result.",
    "clean": "Stop it and delete its data. Downloads stay.",
    "manage": "Run a command of Django on what runs, such as ensure_login.",
}


def _command(name: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        if find_spec("django") is None or find_spec("controlplane") is None:
            raise CommandFailed("The services of Headgate are not installed. Run: pip install 'headgate[server]'")
        command = [sys.executable, "-m", "controlplane.embedded", name, *context.args]
        try:
            code = subprocess.run(command, check=False).returncode
        except KeyboardInterrupt:  # the stack got it too, and has ended in order
            code = 130
        raise Ended(code)

    run.__doc__ = _HELP[name]
    return run


COMMANDS = {name: _command(name) for name in _HELP}
