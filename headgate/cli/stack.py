"""The whole of Headgate on this machine: the commands of the embedded stack, which the extra ``server`` brings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
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
        # In this process: a signal then reaches what has to stop the stack in order.
        raise Ended(import_module("controlplane.embedded.__main__").main([name, *context.args]))

    run.__doc__ = _HELP[name]
    return run


COMMANDS = {name: _command(name) for name in _HELP}
