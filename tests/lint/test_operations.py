"""Alert rules and dashboards: they ask for metrics that exist, and each rule has a test and a runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.common.measures import METRICS
from controlplane.metrics.families import FAMILIES
from ingestion.specs.counters import OUTCOMES
from tests.support.dashboards import DASHBOARDS, expressions

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations"
LABELS = {
    **{family.name: set(family.labels) for family in FAMILIES.values()},
    **{metric._name.removesuffix("_total"): set(metric._labelnames) for metric in METRICS},
}
WORDS = {outcome.name for outcome in OUTCOMES}  # of the label `outcome` of records
SELECTOR = re.compile(r"\b(headgate_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((OPERATIONS / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def check(expression: str) -> None:
    """Its metrics and their labels exist, and outcomes of records are words that exist."""
    found = SELECTOR.findall(expression)
    for name, matchers in found:
        labels = LABELS.get(name) or LABELS.get(re.sub(r"_(count|sum|bucket|total)$", "", name))
        assert labels is not None, f"{name} is no metric: {expression}"
        for label, value in MATCHER.findall(matchers):
            assert label in labels, f"{name} has no label {label}: {expression}"
            if name == "headgate_records_total" and label == "outcome":
                assert set(value.split("|")) <= WORDS, expression


def test_rules_ask_for_metrics_that_exist(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        check(rule["expr"])
        assert "headgate" in rule["expr"]


def test_each_rule_fires_in_one_test_and_is_quiet_in_another(rules: list[dict[str, Any]]) -> None:
    tests = yaml.safe_load((OPERATIONS / "rules.test.yml").read_text())["tests"]
    shown = {(case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]}
    assert shown == {(rule["alert"], fires) for rule in rules for fires in (True, False)}


def test_each_rule_has_a_runbook_with_steps(rules: list[dict[str, Any]]) -> None:
    page = (OPERATIONS / "alerts.md").read_text()
    sections = dict(re.findall(r"^## (Headgate\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert "\n1. " in sections[rule["alert"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_ask_for_metrics_that_exist(path: Path) -> None:
    found = expressions(path)
    assert len(found) > 5
    for expression in found:
        check(expression)
        assert "headgate_" in expression
