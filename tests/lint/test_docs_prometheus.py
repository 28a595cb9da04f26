"""The reference's tables of metrics say what the code has, and every metric is named as Prometheus' users expect it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client import Histogram

from controlplane.common.measures import METRICS
from controlplane.config import settings
from controlplane.metrics.families import FAMILIES
from tests.lint.sources import PROJECT, differences, no_faults, text_of
from tests.support.pages import codes, rows, section

PAGE = text_of(PROJECT / "docs" / "reference" / "prometheus.md")
Row = tuple[str, str, tuple[str, ...], str, str]
# What a label may be: a name that people give, or a word of a short list. Nothing grows with what is ingested.
LABELS = {"team", "datasource", "supervisor", "state", "kind", "code", "outcome", "detail", "status", "reason"}
LABELS_OF_PROCESSES = {"view", "method", "status", "kind", "outcome", "task", "request"}


def of_store() -> Iterator[Row]:
    for family in FAMILIES.values():
        kind = "counter" if family.is_counter else "gauge"
        yield family.name, kind, family.labels, unit_of(family.name), family.meaning


def of_process() -> Iterator[Row]:
    for metric in METRICS:
        (described,) = metric.describe()
        name = described.name + ("_total" if described.type == "counter" else "")
        yield name, described.type, metric._labelnames, unit_of(name), described.documentation


def unit_of(name: str) -> str:
    plain = name.removesuffix("_total")
    if plain.endswith("_timestamp_seconds"):
        return "Unix time"
    return next((unit for unit in ("seconds", "bytes") if plain.endswith(f"_{unit}")), "–")


def documented(title: str) -> list[Row]:
    return [
        (codes(name)[0], kind, tuple(codes(labels)), unit, meaning)
        for name, kind, labels, unit, meaning in rows(section(title, PAGE))
    ]


def test_every_metric_is_described_as_it_is() -> None:
    for title, metrics in (("Metrics of the metadata store", of_store()), ("Metrics of a process", of_process())):
        no_faults(differences(map(str, documented(title)), map(str, metrics)), f"the table {title!r}")


def test_names_are_of_prometheus_conventions() -> None:
    for name, kind, labels, _, meaning in [*of_store(), *of_process()]:
        assert re.fullmatch(r"headgate(_[a-z]+)+", name), name
        assert name.endswith("_total") == (kind == "counter"), f"{name} is a {kind}"
        assert not re.search(r"_(count|sum|bucket|info|created|gauge|counter|ms|kb|minutes)\b", name), name
        assert not set(labels) & {"le", "quantile", "instance", "job"}, f"{name}: a label that Prometheus has itself"
        assert meaning.endswith("."), name


def test_a_duration_is_in_seconds_and_a_size_in_bytes() -> None:
    histograms = [name for name, kind, *_ in of_process() if kind == "histogram"]
    assert len(histograms) == sum(isinstance(m, Histogram) for m in METRICS) > 3
    assert all(name.endswith("_duration_seconds") for name in histograms)


def test_labels_are_bounded() -> None:
    assert {label for *_, labels, _, _ in of_store() for label in labels} <= LABELS
    assert {label for *_, labels, _, _ in of_process() for label in labels} <= LABELS_OF_PROCESSES


def test_names_are_there_once() -> None:
    names = [name for name, *_ in [*of_store(), *of_process()]]
    assert len(names) == len(set(names))


def test_metrics_are_on_and_nobody_has_their_token_until_one_is_set() -> None:
    assert (settings.METRICS, settings.METRICS_TOKEN, settings.METRICS_PORT) == (True, "", 0)
