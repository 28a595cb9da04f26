"""What benchmarks are held to."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.__main__ import NAMES, _exit_code
from benchmarks.targets import TARGETS, Target


def test_every_benchmark_has_targets() -> None:
    assert set(TARGETS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_run(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__ and callable(module.run) and callable(module.add_options)


@pytest.mark.parametrize(
    ("bound", "figure", "met"),
    [("at least", 2.0, True), ("at least", 1.99, False), ("at most", 2.0, True), ("at most", 2.01, False)],
)
def test_a_target_is_met_at_its_value(bound: str, figure: float, met: bool) -> None:
    target = Target("rate", bound, 2.0)  # type: ignore[arg-type]  # a parameter is any text
    assert target.met_by({"rate": figure}) is met
    assert not target.met_by({}) and not target.met_by({"rate": None})


def test_the_exit_code_tells_a_loss_from_slowness() -> None:
    good = {"peak_rss_mb": 399, "lost": 0, "duplicated": 0}
    assert _exit_code({"memory": good}) == 0
    assert _exit_code({"memory": {**good, "peak_rss_mb": 401}}) == 3
    assert _exit_code({"memory": {**good, "lost": 1}}) == 1
    assert _exit_code({"soak": {"lost": 0, "duplicated": 0, "wrong": ["an offset is in two segments"]}}) == 1
    assert _exit_code({"soak": {"lost": 0, "duplicated": 0, "wrong": []}}) == 0
    assert _exit_code({"memory": None}) == 1
