"""``python -m benchmarks NAME [options]``: runs one benchmark, on a stack of its own in a temporary folder."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

NAMES = ("share", "offsets", "latency", "memory", "publish", "index", "decode", "soak")


def main() -> int:
    """Exit code 0 when the benchmark ran and nothing was lost or doubled."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as at Ctrl-C, what was started is stopped
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
    return 1 if any(results.get(key) for key in ("lost", "duplicated", "wrong")) else 0


def _print(name: str, results: dict[str, Any]) -> None:
    table = Table(title=f"benchmark {name}")
    table.add_column("what")
    table.add_column("value", justify="right")
    for key, value in results.items():
        table.add_row(key, _text(value))
    Console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
