"""The data plane's one tree of errors: drawn as it is, with what a caller can do as data."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
from collections.abc import Iterator

import pytest

import ingestion
from ingestion import errors
from ingestion.client.errors import PublishRefused, TaskOver
from ingestion.errors import IngestionError
from ingestion.segments.errors import DeepStorageError
from ingestion.sources.base import OffsetsUnavailable, SourceProblem
from ingestion.spark.worker import IndexerEnd
from ingestion.specs.messages.protocol import Refusal
from ingestion.task.errors import DeadlineExceeded, Fenced, StorageRefused

_DRAWN = re.compile(r"^((?:│   |    )*)(?:├|└)── (\w+)((?: [*-])*)", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def _all_is_loaded() -> None:
    for module in pkgutil.walk_packages(ingestion.__path__, "ingestion."):
        if not module.name.endswith(("__main__", "spark.index", "spark.daemon", "decoder_child", "warm_up")):
            importlib.import_module(module.name)


def tree(base: type[IngestionError] = IngestionError, depth: int = 0) -> Iterator[tuple[int, str, bool, bool]]:
    """How deep, which, whether it is permanent, whether it is a failure."""
    for error in base.__subclasses__():
        if error.__module__.startswith("ingestion."):
            yield depth, error.__name__, error.permanent, error.is_failure
            yield from tree(error, depth + 1)


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = [
        (len(indent) // 4, name, "*" in marks, "-" not in marks)
        for indent, name, marks in _DRAWN.findall(errors.__doc__ or "")
    ]
    assert sorted(drawn) == sorted(tree())


def test_each_is_explained_without_a_message() -> None:
    assert str(DeadlineExceeded()) == "The lock is about to end and there is no outcome yet."
    assert str(DeadlineExceeded("the lock is lost")) == "the lock is lost"
    assert str(PublishRefused(Refusal(code="fenced", detail="epoch 3 is over"))) == "epoch 3 is over"


def test_whether_it_is_for_good_is_said_by_the_class_or_by_who_raises_it() -> None:
    assert not SourceProblem("Kafka does not answer").permanent
    assert SourceProblem("the topic was deleted", permanent=True).permanent
    assert OffsetsUnavailable("they are gone").permanent
    assert not DeepStorageError("the disk is full", permanent=False).permanent


@pytest.mark.parametrize(
    ("error", "permanent", "may_pass", "farewell"),
    [
        (SourceProblem("Kafka does not answer"), False, True, "finish"),
        (OffsetsUnavailable("they are gone"), True, False, "finish"),
        (StorageRefused("access denied"), True, False, "stop"),
        (DeepStorageError("no such scheme", permanent=True), True, False, "stop"),
        (DeepStorageError("the disk is full", permanent=False), False, True, "stop"),
        (Fenced("a newer epoch runs"), False, False, "finish"),
        (TaskOver("the task has ended"), True, False, "finish"),
    ],
)
def test_what_the_driver_hears_of_it(error: IngestionError, permanent: bool, may_pass: bool, farewell: str) -> None:
    heard = pickle.loads(pickle.dumps(IndexerEnd.of(error)))
    assert (heard.kind, heard.reason) == (type(error).__name__, str(error))
    assert (heard.permanent, heard.may_pass, heard.directive_for_others) == (permanent, may_pass, farewell)
