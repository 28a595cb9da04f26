"""What a user may do to a supervisor or a task now, and the question that is asked before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.forms import Form
from django.urls import reverse

from controlplane.connections.models import Connection
from controlplane.supervisors.autoscaler import auto_scaler, task_count
from controlplane.supervisors.connections import uses_of
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Goal, Task
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may
from frontend.forms import ResetForm, ScaleForm
from frontend.task_names import short_name


@dataclass(frozen=True)
class PageAction:
    """A button and its confirmation. ``url`` takes the POST, ``confirm_url`` shows the question as a page."""

    name: str
    label: str
    question: str
    text: str
    url: str
    confirm_url: str
    style: str = "secondary"
    form: Form | None = None

    def with_form(self, form: Form) -> PageAction:
        """The action with a form that has been filled in."""
        return replace(self, form=form)


class SupervisorActions:
    """suspend or resume, handoff, scale, reset, terminate."""

    @classmethod
    def for_user(cls, user: User, supervisor: Supervisor) -> dict[str, PageAction]:
        """By name, only what the role and the state allow."""
        team = supervisor.datasource.team
        if supervisor.terminated_at is not None:
            return {}
        if supervisor.parent_id is not None:
            return cls._of_topic(user, supervisor)
        actions: list[PageAction] = []
        if may(user, Action.OPERATE, team):
            at_rest = supervisor.suspended
            actions += [cls._resume(supervisor)] if at_rest else [cls._suspend(supervisor), cls._handoff(supervisor)]
        if may(user, Action.ADMINISTER, team):
            # What an autoscaler sets is not set by hand.
            actions += [] if auto_scaler(supervisor) else [cls._scale(supervisor)]
            if supervisor.io_config.traits.keeps_offsets and supervisor.fills_id is None:
                actions.append(cls._reset(supervisor))
            actions.append(cls._terminate(supervisor))
        return {action.name: action for action in actions}

    @classmethod
    def _of_topic(cls, user: User, supervisor: Supervisor) -> dict[str, PageAction]:
        """Of one that reads a topic for another: what is not done to all of that one's topics together."""
        team, actions = supervisor.datasource.team, []
        if may(user, Action.OPERATE, team) and not supervisor.suspended:
            actions.append(cls._handoff(supervisor))
        if may(user, Action.ADMINISTER, team):
            actions += [cls._reset(supervisor)] if supervisor.io_config.traits.keeps_offsets else []
            actions += [cls._terminate(supervisor)] if supervisor.lacks_topic else []
        return {action.name: action for action in actions}

    @classmethod
    def _suspend(cls, supervisor: Supervisor) -> PageAction:
        return cls._action(
            supervisor,
            "suspend",
            "Suspend",
            "Its task publishes what it holds and ends. No new one starts until you resume. Nothing is lost.",
        )

    @classmethod
    def _resume(cls, supervisor: Supervisor) -> PageAction:
        return cls._action(
            supervisor, "resume", "Resume", "A new task starts. It continues where the last one stopped.", "primary"
        )

    @classmethod
    def _scale(cls, supervisor: Supervisor) -> PageAction:
        text = "Indexers start or stop while the others continue. This writes a new version of the spec."
        return cls._action(supervisor, "scale", "Scale", text).with_form(
            ScaleForm(initial={"task_count": task_count(supervisor)})
        )

    @classmethod
    def _handoff(cls, supervisor: Supervisor) -> PageAction:
        text = (
            "The next task starts. Then the current one publishes what it holds and ends. Nothing is lost. Reading "
            "pauses only if there are too few slots for both tasks."
        )
        return cls._action(supervisor, "handoff", "Hand off", text)

    @classmethod
    def _reset(cls, supervisor: Supervisor) -> PageAction:
        text = (
            "Reading continues at the new offsets. Headgate skips unread records before them. It stores records again "
            "that it reads again. The running task discards its unpublished records. If you delete all offsets, "
            "reading starts where the spec says."
        )
        action = cls._action(supervisor, "reset", "Reset offsets", text, "danger").with_form(ResetForm())
        return replace(action, question=f"Reset the offsets of {supervisor.id}?")

    @classmethod
    def _terminate(cls, supervisor: Supervisor) -> PageAction:
        text = (
            "Its task ends, and no other task starts. Rewinds that have begun go on. The datasource and its segments "
            "stay. To start it again, submit a spec with the same id."
        )
        return cls._action(supervisor, "terminate", "Terminate", text, "danger")

    @staticmethod
    def _action(supervisor: Supervisor, name: str, label: str, text: str, style: str = "secondary") -> PageAction:
        url = reverse(f"frontend:supervisor-{name}", args=[supervisor.id])
        ask = reverse("frontend:supervisor-confirm", args=[supervisor.id, name])
        return PageAction(name, label, f"{label} {supervisor.id}?", text, url, ask, style)


class ConnectionActions:
    """restart, delete."""

    @classmethod
    def for_user(cls, user: User, connection: Connection) -> dict[str, PageAction]:
        """By name, only what the role and its uses allow."""
        actions: list[PageAction] = []
        if may(user, Action.OPERATE, connection.team):
            text = (
                "Their tasks publish and end as soon as new tasks run. The new tasks use the current connection. "
                "Nothing is lost. Suspended supervisors use it when you resume them."
            )
            question = f"Restart supervisors that use {connection.name}?"
            actions.append(cls._action(connection, "restart", "Restart supervisors that use it", question, text))
        if may(user, Action.ADMINISTER, connection.team) and not uses_of(connection):
            text = "Its secrets are deleted too."
            question = f"Delete the connection {connection.name}?"
            actions.append(cls._action(connection, "delete", "Delete", question, text, "danger"))
        return {action.name: action for action in actions}

    @staticmethod
    def _action(
        connection: Connection, name: str, label: str, question: str, text: str, style: str = "secondary"
    ) -> PageAction:
        names = [connection.team.name, connection.name]
        url = reverse(f"frontend:connection-{name}", args=names)
        ask = reverse("frontend:connection-confirm", args=[*names, name])
        return PageAction(name, label, question, text, url, ask, style)


class TaskActions:
    """finish, stop."""

    @classmethod
    def for_user(cls, user: User, task: Task) -> dict[str, PageAction]:
        """By name, only what the role and the state allow."""
        if task.ended or task.goal == Goal.STOP or not may(user, Action.OPERATE, task.datasource.team):
            return {}
        held_text = (
            "It ends at once and discards its unpublished records. They are not lost: a later task can read them again."
        )
        rest = "It ends at once. Changes that it has made stay."
        question = f"Stop task {short_name(task.id)} now?"
        stop = cls._action(task, "stop", "Stop now", question, rest if task.is_of_segments else held_text, "danger")
        actions = [stop]
        if task.goal == Goal.RUN and not task.is_of_segments:
            text = "It stops polling, publishes what it holds, and ends."
            question = f"Finish task {short_name(task.id)}?"
            actions.insert(0, cls._action(task, "finish", "Finish", question, text, "secondary"))
        return {action.name: action for action in actions}

    @staticmethod
    def _action(task: Task, name: str, label: str, question: str, text: str, style: str) -> PageAction:
        url = reverse(f"frontend:task-{name}", args=[task.id])
        ask = reverse("frontend:task-confirm", args=[task.id, name])
        return PageAction(name, label, question, text, url, ask, style)
