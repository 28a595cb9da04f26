"""The embedded development stack: PostgreSQL, Valkey and Kafka from Python packages, without root and without Docker.

Tests and benchmarks use the parts alone:

    with temporary_home() as home, Postgres(home) as postgres, Kafka(home) as kafka:
        connect(postgres.dsn); produce(kafka.bootstrap)

`python -m controlplane.embedded --help` has the whole stack. Nothing here imports Django.
"""

from controlplane.embedded.errors import EmbeddedError, PrerequisiteMissing, ServiceFailed
from controlplane.embedded.home import Home, temporary_home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.service import Service
from controlplane.embedded.valkey import Valkey

__all__ = [
    "EmbeddedError",
    "Home",
    "Kafka",
    "Postgres",
    "PrerequisiteMissing",
    "Service",
    "ServiceFailed",
    "Valkey",
    "temporary_home",
]
