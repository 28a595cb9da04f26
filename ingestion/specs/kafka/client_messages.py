"""What Kafka's client says in words of its own that name neither the cause nor what to do."""

from __future__ import annotations

from typing import Any

NO_BROKER = (
    "what listens there does not answer as a broker of Kafka: it may be the port of a controller, or a broker that is "
    "too old. Put the address of a broker's listener into bootstrap.servers"
)


def client_error_text(error: Any) -> str:
    """A client's error (a ``KafkaError``): its own text, or what that means."""
    message = str(error.str())
    return f"{NO_BROKER} ({message})" if error.name() == "_UNSUPPORTED_FEATURE" else message
