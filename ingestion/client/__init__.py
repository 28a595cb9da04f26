"""The data plane's way to the control plane: HTTP with the task's token, and an in-memory twin for tests and trials."""

from ingestion.client.base import ControlPlane
from ingestion.client.errors import ClientError, Invalid, PublishRefused, TaskOver, Unacceptable, Unreachable
from ingestion.client.http import HttpControlPlane
from ingestion.client.memory import MemoryControlPlane

__all__ = [
    "ClientError",
    "ControlPlane",
    "HttpControlPlane",
    "Invalid",
    "MemoryControlPlane",
    "PublishRefused",
    "TaskOver",
    "Unacceptable",
    "Unreachable",
]
