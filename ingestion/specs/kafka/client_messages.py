"""What Kafka's client says in words of its own that name neither the cause nor what to do."""

from __future__ import annotations

from typing import Any

# How an indexer's message begins when the broker has no share groups: the control plane looks for it.
SHARE_GROUPS_OFF = "The broker does not offer share groups"
# Kafka's names of what a login lacks the right for.
NO_RIGHT = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
NO_BROKER = (
    "what listens there does not answer as a broker of Kafka: it may be the port of a controller, or a broker that is "
    "too old. Put the address of a broker's listener into bootstrap.servers"
)


def client_error_text(error: Any) -> str:
    """A client's error (a ``KafkaError``): its own text, or what that means."""
    message = str(error.str())
    return f"{NO_BROKER} ({message})" if error.name() == "_UNSUPPORTED_FEATURE" else message


def share_groups_off(error: Any) -> str:
    """Why no share group of this broker can be read; empty when a ``KafkaError`` says something else."""
    if error.name() != "UNSUPPORTED_VERSION":
        return ""
    return f"{SHARE_GROUPS_OFF} ({error.str()}): they need Kafka 4.2 or newer with share.version 1."
