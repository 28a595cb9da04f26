"""The embedded development stack: PostgreSQL, Valkey and Kafka from Python packages, without root and without Docker.

Tests and benchmarks use the parts alone:

    with temporary_home() as home, Postgres(home) as postgres, Kafka(home) as kafka:
        connect(postgres.dsn); produce(kafka.bootstrap)

`python -m controlplane.embedded --help` has the whole stack. Nothing here imports Django.
"""
