"""Questions to others that answer slowly or not at all, asked side by side: none waits for another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

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
            problem = future.exception()
            if problem is not None and not isinstance(problem, Exception):
                raise problem
            yield futures[future], future.result() if problem is None else problem
    except TimeoutError:
        pass  # the caller sees what is missing
    finally:
        pool.shutdown(wait=within_s is None, cancel_futures=True)
