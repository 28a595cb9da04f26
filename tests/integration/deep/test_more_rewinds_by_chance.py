"""More sequences of ``test_rewinds_by_chance`` than each change can wait for."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.integration.test_rewinds_by_chance import SEQUENCES, Step, walk


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=SEQUENCES)
def test_the_rows_are_those_of_a_clean_run(db: None, steps: list[Step]) -> None:
    walk(steps)
