"""Checks of an installation. Each says what it found, and what to do; none changes anything, but for a probe file."""
