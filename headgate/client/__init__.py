"""Headgate's REST for programs: ``Client``, and errors split by what their caller can do. Needs only ``httpx2``."""

from headgate.client.errors import (
    ChangedMeanwhile,
    ClientError,
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotLoggedIn,
    ServerFailed,
    TryLater,
    Unreachable,
)
from headgate.client.site import Client

__all__ = [
    "ChangedMeanwhile",
    "Client",
    "ClientError",
    "Conflict",
    "InvalidRequest",
    "NotAllowed",
    "NotFound",
    "NotLoggedIn",
    "ServerFailed",
    "TryLater",
    "Unreachable",
]
