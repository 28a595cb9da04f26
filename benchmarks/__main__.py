"""``python -m benchmarks NAME [options]``: runs one benchmark, on a stack of its own in a temporary folder."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

NAMES = ("share", "offsets", "latency", "memory", "publish", "index", "decode")


def main() -> int:
    """Exit code 0 when the benchmark ran and nothing was lost or doubled."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in NAMES:
        print(f"usage: python -m benchmarks {{{','.join(NAMES)}}} [options]", file=sys.stderr)
        return 2
    benchmark = importlib.import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=benchmark.__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    benchmark.add_options(parser)
    options = parser.parse_args(sys.argv[2:])
    results = benchmark.run(options)
    _print(name, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if results.get("lost") or results.get("duplicated") else 0


def _print(name: str, results: dict[str, float | str | None]) -> None:
    table = Table(title=f"benchmark {name}")
    table.add_column("what")
    table.add_column("value", justify="right")
    for key, value in results.items():
        table.add_row(key, _text(value))
    Console().print(table)


def _text(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
