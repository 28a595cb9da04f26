"""Questions to others that answer slowly or not at all, asked side by side: none waits for another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from typing import Any, TypeVar

AT_ONCE = 32
Q = TypeVar("Q")
A = TypeVar("A")


def ask_all(
    ask: Callable[[Q], A], questions: Iterable[Q], within_s: float | None = None
) -> Iterator[tuple[Q, A | Exception]]:
    """Each question with its answer, or with what went wrong with it alone, as they come in.

    ``within_s``: what is not answered by then is left out; None: all are waited for. ``ask`` runs in threads, 32 at a
    time, and must not use the database.
    """
    pool = ThreadPoolExecutor(AT_ONCE, "question")
    futures = {pool.submit(ask, question): question for question in questions}
    try:
        for future in as_completed(futures, timeout=within_s):
            yield futures[future], _answer(future)
    except TimeoutError:
        pass  # the caller sees what is missing
    finally:
        pool.shutdown(wait=within_s is None, cancel_futures=True)


def ask_in_groups(
    ask: Callable[[Q], A], questions: Iterable[Q], most: int
) -> Generator[list[tuple[Q, A | Exception]], None, None]:
    """The answers in groups, to treat them at once: all that have come since the last group, ``most`` at most.

    A slow answer keeps no other one waiting. Problems: as in ``ask_all``.
    """
    with ThreadPoolExecutor(AT_ONCE, "question") as pool:
        futures = {pool.submit(ask, question): question for question in questions}
        pending = set(futures)
        try:
            while pending:
                done = list(wait(pending, return_when=FIRST_COMPLETED).done)[:most]
                pending.difference_update(done)
                yield [(futures[future], _answer(future)) for future in done]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _answer(future: Future[Any]) -> Any:
    """Or what went wrong with it."""
    problem = future.exception()
    if problem is not None and not isinstance(problem, Exception):
        raise problem
    return future.result() if problem is None else problem
