"""The program ``headgate``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from headgate.cli import acting, applying, bounded, context, reading, rewinding, stack, waiting
from headgate.cli.errors import CommandFailed, Ended
from headgate.client import ClientError
from headgate.version import VERSION

app = typer.Typer(
    name="headgate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would show local variables, among them tokens
    rich_markup_mode=None,
)
FAILED, INTERRUPTED = 1, 130
COMMANDS: dict[str, Callable[..., None]] = {
    "login": acting.login,
    "get": reading.get,
    "describe": reading.describe,
    "apply": applying.apply_files,
    "export": applying.export,
    "sample": reading.sample,
    "logs": reading.logs,
    "record": reading.record,
    "quarantine": reading.quarantine,
    "sql": reading.sql,
    "suspend": acting.suspend,
    "resume": acting.resume,
    "reset": acting.reset,
    "handoff": acting.handoff,
    "read": bounded.read,
    "backfill": bounded.backfill,
    "backfills": bounded.backfills,
    "rewind": rewinding.rewind,
    "rewinds": rewinding.rewinds,
    "undo-rewind": rewinding.undo_rewind,
    "cancel-rewind": rewinding.cancel_rewind,
    "wait": waiting.wait,
}
for _name, _function in COMMANDS.items():
    app.command(_name)(_function)
for _name, _of_stack in stack.COMMANDS.items():
    app.command(_name, context_settings=stack.REST_OF_LINE, add_help_option=False)(_of_stack)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headgate {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    profile: Annotated[str, typer.Option(help="The site of a login.", envvar="HEADGATE_PROFILE")] = "",
    url: Annotated[str, typer.Option(help="Another site; its token comes from HEADGATE_TOKEN.")] = "",
    team: Annotated[str, typer.Option(help="Of new objects; only its objects in lists.")] = "",
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Headgate on the command line."""
    context.set_options(context.Options(profile, url, team))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Every error is 1, a wrong option too: 2 says that a plan has changes."""
    command = typer.main.get_command(app)
    try:
        command.main(args=None if arguments is None else list(arguments), prog_name="headgate")
    except SystemExit as error:
        return error.code if error.code in (0, INTERRUPTED) else FAILED
    except Ended as error:
        return error.code
    except (ClientError, CommandFailed) as error:
        print(context.message_of(error), file=sys.stderr)
        return FAILED
    return 0
