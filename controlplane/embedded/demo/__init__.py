"""`make demo`: real data through the whole stack, and a report whose every count is checked."""

from controlplane.embedded.demo.run import run_demo

__all__ = ["run_demo"]
