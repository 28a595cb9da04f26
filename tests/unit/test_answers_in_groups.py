"""Slow questions, asked side by side: their answers come in groups."""

from __future__ import annotations

import threading

import pytest

from controlplane.common.parallel import ask_in_groups


def test_what_comes_in_meanwhile_comes_together() -> None:
    late, taken = threading.Event(), 0
    groups = ask_in_groups(lambda n: late.wait(30) and n if n else n, range(20), 8)
    assert next(groups) == [(0, 0)]  # the others keep it from nobody
    late.set()
    sizes = []
    for group in groups:
        assert all(question == answer for question, answer in group)
        sizes.append(len(group))
        taken += len(group)
    assert taken == 19
    assert max(sizes) <= 8


def test_what_goes_wrong_with_one_is_its_answer() -> None:
    def ask(number: int) -> float:
        return 1 / number

    answers = [answer for group in ask_in_groups(ask, [1, 0, 2], 8) for answer in group]
    by_question = dict(answers)
    assert (by_question[1], by_question[2]) == (1, 0.5)
    assert isinstance(by_question[0], ZeroDivisionError)


def test_nothing_to_ask_gives_no_group() -> None:
    assert list(ask_in_groups(str, [], 8)) == []


def test_who_goes_away_does_not_wait_for_questions_that_were_not_asked() -> None:
    asked = []

    def ask(number: int) -> int:
        asked.append(number)
        threading.Event().wait(0.01)  # a slow answer
        return number

    groups = ask_in_groups(ask, range(10_000), 1)
    next(groups)
    groups.close()
    assert len(asked) < 10_000
    with pytest.raises(StopIteration):
        next(groups)
