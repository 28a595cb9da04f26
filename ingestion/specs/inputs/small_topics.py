"""``smallTopicRate``: topics that share an application with others, one indexer each."""

from __future__ import annotations


def check_one_indexer(task_count: int, replicas: int, *, scales: bool) -> None:
    """Raises ``ValueError`` for what a topic that is to share an application may not ask for."""
    if task_count > 1:
        raise ValueError("smallTopicRate needs a taskCount of 1: a topic that needs more indexers is not small")
    if replicas > 1:
        raise ValueError("smallTopicRate needs replicas of 1: replicas in one application would die together")
    if scales:
        raise ValueError("smallTopicRate cannot be used with an enabled autoScalerConfig")
