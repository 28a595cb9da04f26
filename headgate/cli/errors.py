"""What ends a command."""

from __future__ import annotations


class CommandFailed(Exception):
    """Exit code 1. Its text says what is wrong, where, and what to do."""


class Ended(Exception):
    """The command has said all. Its exit code is not an error's."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
