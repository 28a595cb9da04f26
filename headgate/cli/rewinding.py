"""Commands of rewinds: stored records are read again, and replace the segments that they are in."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any

import typer

from headgate.cli import context
from headgate.cli.acting import Yes, confirm
from headgate.cli.bounded import offset_range
from headgate.cli.errors import CommandFailed
from headgate.cli.output import Form, plain, written
from headgate.client.shapes import Rewind, RewindPlan

_COLUMNS = ("rewind", "parts", "records", "rows_before", "rows_after", "dry_run", "read_with", "created_at", "by")
_PLANNED = ("start", "end", "segments", "rows", "records", "others")
Time = Annotated[str, typer.Option(metavar="TIME", help="Such as 2026-11-27T09:00:00Z.", show_default=False)]
Number = Annotated[int, typer.Argument(min=1, help="The number of a rewind.", show_default=False)]
Stored = Annotated[int | None, typer.Option(min=1, help="Records that this version has stored.", show_default=False)]
OfRewind = Annotated[int | None, typer.Option(min=1, help="Records that it has read.", show_default=False)]
ReadWith = Annotated[int | None, typer.Option(min=1, help="The spec version; else the current.", show_default=False)]
Ranges = Annotated[
    list[str] | None,
    typer.Option("--range", metavar="PARTITION=START:END", help="Records of a partition. Repeat it for others."),
]
OnlyPossible = Annotated[
    bool, typer.Option("--only-possible", help="Leave segments as they are that can't be recomputed.")
]


class OtherRecords(StrEnum):
    """With which spec version the records are read that were not chosen."""

    read_with = "read_with"
    own = "own"


Others = Annotated[
    OtherRecords, typer.Option(help="Read the other records of the same segments with their own version, or as these.")
]


def rewind(
    supervisor: context.Supervisor,
    spec_version: Stored = None,
    published_from: Time = "",
    published_until: Time = "",
    range_: Ranges = None,
    of_rewind: OfRewind = None,
    rows_from: Time = "",
    rows_until: Time = "",
    read_with: ReadWith = None,
    others: Others = OtherRecords.read_with,
    only_possible: OnlyPossible = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read all, and replace nothing.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it would read and replace.")] = False,
    output: context.Output = Form.table,
    yes: Yes = False,
) -> None:
    """Read a supervisor's stored records again, and replace the segments that they are in.

    It shows the parts, and what can't be recomputed, and asks. Records: all that you give must hold, or only times of
    rows.
    """
    asked = {
        "spec_version": spec_version,
        "published_from": published_from,
        "published_until": published_until,
        "of_rewind": of_rewind,
        "rows_from": rows_from,
        "rows_until": rows_until,
        "read_with": read_with,
        **_offsets(range_),
        "others": others.value if others is OtherRecords.own else None,
        "only_possible": only_possible,
        "dry_run": dry_run,
    }
    asked = {name: value for name, value in asked.items() if value}
    with context.site() as client:
        plan = client.rewind(supervisor, **asked, preview=True)
        if output is Form.table or not (preview or yes):
            typer.echo(_preview(plan), err=output is not Form.table)
        if not preview:
            confirm(f"Begin this {'dry run' if dry_run else 'rewind'} of {supervisor}?", yes)
            plan = client.rewind(supervisor, **{**asked, "read_with": plan["read_with"]})
    if output is not Form.table:
        typer.echo(written(dict(plan), output))
    elif not preview:
        typer.echo(f"Rewind {plan['rewind']} reads {plan['records']:,} records.")


def rewinds(supervisor: context.Supervisor, output: context.Output = Form.table) -> None:
    """List a supervisor's rewinds and how far they are, newest first."""
    with context.site() as client:
        listed = client.rewinds(supervisor)
    rows = [_row(one) if output is Form.table else dict(one) for one in listed]
    typer.echo(written(rows, output, _COLUMNS))


def undo_rewind(supervisor: context.Supervisor, number: Number, yes: Yes = False) -> None:
    """Put the old segments of a rewind back into use, in place of its new ones."""
    confirm(f"Undo rewind {number} of {supervisor}? Its old segments are used again.", yes)
    with context.site() as client:
        _say(client.undo_rewind(supervisor, number), "undone")


def cancel_rewind(supervisor: context.Supervisor, number: Number, yes: Yes = False) -> None:
    """Leave the parts of a rewind that wait. What is done stays."""
    confirm(f"Cancel the waiting parts of rewind {number} of {supervisor}?", yes)
    with context.site() as client:
        _say(client.cancel_rewind(supervisor, number), "cancelled")


def _say(one: Rewind, state: str) -> None:
    count = sum(part["state"] == state for part in one["parts"])
    typer.echo(f"Rewind {one['rewind']}: {count} part{'' if count == 1 else 's'} {state}.")


def _offsets(ranges: list[str] | None) -> dict[str, Any]:
    """One range of each partition, as REST takes them."""
    found = [offset_range(text) for text in ranges or ()]
    if len({partition for partition, _, _ in found}) < len(found):
        raise CommandFailed("--range names a partition twice.")
    starts, ends = {str(p): start for p, start, _ in found}, {str(p): end for p, _, end in found}
    return {"start_offsets": starts, "end_offsets": ends}


def _preview(plan: RewindPlan) -> str:
    """The parts, what can't be recomputed, and the sum."""
    lines = [written([dict(part) for part in plan["parts"]], Form.table, _PLANNED)]
    for group in plan["refused"]:
        rows = f"{len(group['segments']):,} segments with {group['rows']:,} rows"
        lines.append(f"Can't be recomputed: {rows}. {group['reason']}")
    count = len(plan["parts"])
    parts = f"{count:,} part{'' if count == 1 else 's'}"
    lines.append(f"Reads {plan['records']:,} records again with spec version {plan['read_with']}, in {parts}.")
    return plain("\n".join(lines))


def _row(one: Rewind) -> dict[str, Any]:
    """A rewind as a line of a table."""
    states = Counter(part["state"] for part in one["parts"])
    parts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    return {
        **one,
        "parts": parts,
        "records": sum(part["records"] for part in one["parts"]),
        "rows_before": sum(part["rows_before"] for part in one["parts"]),
        "rows_after": sum(part["rows_after"] for part in one["parts"]),
    }
