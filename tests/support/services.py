"""Several services of a stack at once: each waits for its own imports, or for what it has begun."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from controlplane.embedded.service import Service


def stop_all(*services: Service) -> None:
    """In order, each by itself. Those that do not run stay as they are."""
    with ThreadPoolExecutor(max(1, len(services))) as pool:
        list(pool.map(Service.stop, services))  # so that an error is raised


def start_all(*services: Service) -> None:
    """Returns when all are ready. Raises ``ServiceFailed``."""
    for service in services:
        service.start()
    for service in services:
        service.wait_ready()


def restart_all(*services: Service) -> None:
    """Those that run are stopped first, with the same ports and data."""
    stop_all(*services)
    start_all(*services)
