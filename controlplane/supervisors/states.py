"""Druid's states of a supervisor. It has a detailed state; its state and whether it is healthy follow from that."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import Case, TextChoices, Value, When


class State(TextChoices):
    """Druid's supervisor states."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    IDLE = "IDLE"
    COMPLETED = "COMPLETED"  # all offsets of its boundedStreamConfig are settled
    SUSPENDED = "SUSPENDED"
    STOPPING = "STOPPING"
    UNHEALTHY_SUPERVISOR = "UNHEALTHY_SUPERVISOR"
    UNHEALTHY_TASKS = "UNHEALTHY_TASKS"

    @property
    def is_healthy(self) -> bool:
        return self not in (State.UNHEALTHY_SUPERVISOR, State.UNHEALTHY_TASKS)


class Detail(StrEnum):
    """The detailed states, Druid's and our own, each with its state."""

    _value_: str
    state: State

    def __new__(cls, value: str, state: State) -> Detail:
        detail = str.__new__(cls, value)
        detail._value_, detail.state = value, state
        return detail

    PENDING = "PENDING", State.PENDING
    CONNECTING_TO_STREAM = "CONNECTING_TO_STREAM", State.RUNNING
    DISCOVERING_INITIAL_TASKS = "DISCOVERING_INITIAL_TASKS", State.RUNNING
    CREATING_TASKS = "CREATING_TASKS", State.RUNNING
    RUNNING = "RUNNING", State.RUNNING
    BACKING_OFF = "BACKING_OFF", State.RUNNING
    WAITING_FOR_TOPICS = "WAITING_FOR_TOPICS", State.RUNNING
    IDLE = "IDLE", State.IDLE
    UNHEALTHY_TASKS = "UNHEALTHY_TASKS", State.UNHEALTHY_TASKS
    WAITING_FOR_SLOT = "WAITING_FOR_SLOT", State.UNHEALTHY_TASKS
    WAITING_FOR_CAPACITY = "WAITING_FOR_CAPACITY", State.UNHEALTHY_TASKS
    KAFKA_REFUSES = "KAFKA_REFUSES", State.UNHEALTHY_TASKS
    STRANGERS_IN_GROUP = "STRANGERS_IN_GROUP", State.UNHEALTHY_TASKS
    QUOTA_USED_UP = "QUOTA_USED_UP", State.UNHEALTHY_TASKS
    UNABLE_TO_CONNECT_TO_STREAM = "UNABLE_TO_CONNECT_TO_STREAM", State.UNHEALTHY_SUPERVISOR
    LOST_CONTACT_WITH_STREAM = "LOST_CONTACT_WITH_STREAM", State.UNHEALTHY_SUPERVISOR
    UNHEALTHY_SUPERVISOR = "UNHEALTHY_SUPERVISOR", State.UNHEALTHY_SUPERVISOR
    TOO_MANY_TOPICS = "TOO_MANY_TOPICS", State.UNHEALTHY_SUPERVISOR
    STOPPING = "STOPPING", State.STOPPING
    SUSPENDED = "SUSPENDED", State.SUSPENDED
    COMPLETED = "COMPLETED", State.COMPLETED
    TERMINATED = "TERMINATED", State.STOPPING


# In queries, which filter and sort by it.
STATE = Case(*(When(detailed_state__in=[d for d in Detail if d.state == state], then=Value(state)) for state in State))
