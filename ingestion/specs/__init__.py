"""Spec models and wire messages: Druid's JSON names, pydantic and the standard library only.

``tasks.ingestion_spec`` has the two doors, ``parse_task_spec`` and ``parse_supervisor_spec``; both raise ``SpecError``
with every error at once.
"""
