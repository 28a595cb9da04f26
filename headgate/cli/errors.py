"""What ends a command."""

from __future__ import annotations


class CommandFailed(Exception):
    """Exit code 1. Its text says what is wrong, where, and what to do."""


class PlanHasChanges(Exception):
    """Exit code 2: a plan was asked for, and it has changes."""
