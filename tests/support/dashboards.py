"""What Grafana's dashboards ask Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "operations" / "grafana" / "dashboards"
DASHBOARDS = sorted(FOLDER.glob("*.json"))


def expressions(path: Path) -> list[str]:
    """Each panel's expressions with *All* for every variable, and the queries of the variables' values."""
    board = json.loads(path.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    values = [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    asked += [query.removeprefix("label_values(").rpartition(",")[0] for query in values]
    return [re.sub(r"\$\w+", ".*", expression) for expression in asked]
