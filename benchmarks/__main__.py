"""``python -m benchmarks NAME [options]``: runs one benchmark, on a stack of its own in a temporary folder.

``python -m benchmarks all [NAME …]`` runs them in turn and prints one table of what each was to reach and did.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.targets import TARGETS, Target

NAMES = (
    "index",
    "decode",
    "publish",
    "timeline",
    "pages",
    "scale",
    "latency",
    "memory",
    "share",
    "offsets",
    "start",
    "topics",
    "backfill",
    "compaction",
    "batch",
    "soak",
    "upgrade",
    "connector",
    "read",
    "catalog",
    "engines",
    "sql",
)
EXIT_SHORT = 3  # the exit code when nothing was lost or doubled, but something fell short of its target
Results = Mapping[str, Any]


def main() -> int:
    """Exit code 0 when every target was met, 1 when something was lost or doubled or did not run, else 3."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as at Ctrl-C, what was started is stopped
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "all":
        return _run_all()
    if name not in NAMES:
        print(f"usage: python -m benchmarks {{all,{','.join(NAMES)}}} [options]", file=sys.stderr)
        return 2
    return _run_one(name)


def _run_one(name: str) -> int:
    benchmark = importlib.import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=benchmark.__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    benchmark.add_options(parser)
    options = parser.parse_args(sys.argv[2:])
    results = benchmark.run(options)
    _print_results(name, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return _exit_code({name: results})


def _run_all() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks all", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none is given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    options = parser.parse_args(sys.argv[2:])
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    results_by_name = {name: _run_in_process(name) for name in options.names or NAMES}
    _print_targets(results_by_name)
    if options.json:
        options.json.write_text(json.dumps(results_by_name, indent=2) + "\n")
    return _exit_code(results_by_name)


def _run_in_process(name: str) -> Results | None:
    """None when it did not end as it should; what it printed says why."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        subprocess.run([sys.executable, "-m", "benchmarks", name, "--json", str(results)], check=False)
        return json.loads(results.read_text()) if results.exists() else None


def _exit_code(results_by_name: Mapping[str, Results | None]) -> int:
    if any(r is None or any(r.get(key) for key in ("lost", "duplicated", "wrong")) for r in results_by_name.values()):
        return 1
    return EXIT_SHORT if any(not t.met_by(_figures(r)) for n, r in results_by_name.items() for t in TARGETS[n]) else 0


def _figures(results: Results | None) -> Results:
    """What can be counted, as its number."""
    return {key: len(v) if isinstance(v, list) else v for key, v in (results or {}).items()}


def _print_results(name: str, results: Results) -> None:
    targets = {t.key: t for t in TARGETS[name]}
    table = _table(f"benchmark {name}", "what", "value", "target", "")
    for key in [*results, *(targets.keys() - results.keys())]:
        table.add_row(key, _text(results.get(key)), *_target_cells(targets.get(key), results))
    Console().print(table)


def _print_targets(results_by_name: Mapping[str, Results | None]) -> None:
    table = _table("benchmarks", "benchmark", "what", "value", "target", "")
    for name, results in results_by_name.items():
        for target in TARGETS[name]:
            table.add_row(name, target.key, _text((results or {}).get(target.key)), *_target_cells(target, results))
    Console().print(table)


def _target_cells(target: Target | None, results: Results | None) -> Iterable[str]:
    if target is None:
        return "", ""
    return str(target), "" if target.met_by(_figures(results)) else "[bold red]fell short[/]"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column in ("value", "target") else "left")
    return table


def _text(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
