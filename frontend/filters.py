"""Which rows of a list are wanted: choices that stand in its address."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from controlplane.common.health import Code
from controlplane.compaction.models import State as MergeState
from controlplane.connections.models import Connection
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.states import State
from controlplane.tasks.models import Status, task_kinds


class Window(forms.Form):
    """A form whose ``since`` and ``until`` are ``from`` and ``to`` in addresses, as they are in REST's."""

    IN_ADDRESSES = {"since": "from", "until": "to"}

    def add_prefix(self, field_name: str) -> str:
        return self.IN_ADDRESSES.get(field_name, field_name)

    @classmethod
    def parameters(cls) -> list[str]:
        """What its fields are called in an address."""
        return [cls.IN_ADDRESSES.get(name, name) for name in cls.base_fields]


class Filter(forms.Form):
    """Choices from an address: one that can't be read filters nothing."""

    def chosen(self, name: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")


def set_choices(form: forms.Form, name: str, choices: list[tuple[Any, Any]]) -> None:
    """What a field of choices is to be chosen from."""
    cast(forms.ChoiceField, form.fields[name]).choices = choices


def choice_input() -> forms.Select:
    return forms.Select(attrs={"class": "form-select"})


def text_input(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "placeholder": placeholder, "type": "search"})


def time_input() -> forms.DateTimeInput:
    return forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class TaskFilter(Filter):
    """Which tasks to list."""

    status = forms.ChoiceField(required=False, choices=[("", "Any"), *Status.choices], widget=choice_input())
    kind = forms.ChoiceField(
        required=False,
        choices=lambda: [("", "Any"), *task_kinds()],
        widget=choice_input(),
    )
    datasource = forms.CharField(required=False, max_length=200, widget=text_input("Name"))
    supervisor = forms.CharField(required=False, max_length=200, widget=text_input("Id"))
    search = forms.CharField(
        required=False, max_length=200, label="Id contains", widget=text_input("Part of the task's id")
    )


class LogFilter(Filter):
    """Which lines of a log to show."""

    log_text = forms.CharField(
        required=False, max_length=200, label="Lines with", widget=text_input("indexer=1, a word")
    )
    log_level = forms.ChoiceField(
        required=False,
        label="Level",
        choices=[("", "Any"), ("INFO", "Info and above"), ("WARN", "Warnings and above"), ("ERROR", "Errors")],
        widget=choice_input(),
    )


class SupervisorFilter(Filter):
    """Which supervisors to list."""

    state = forms.ChoiceField(required=False, choices=[("", "Any"), *State.choices], widget=choice_input())
    health = forms.ChoiceField(
        required=False,
        label="Trouble",
        choices=[("", "Any"), (Code.KAFKA_UNREACHABLE.value, "Kafka unreachable"), (Code.BEHIND.value, "Lagging")],
        widget=choice_input(),
    )
    search = forms.CharField(required=False, max_length=200, label="Name contains", widget=text_input("Part of the id"))


class ConnectionFilter(Filter):
    """Which connections to list."""

    kind = forms.ChoiceField(required=False, choices=[("", "Any"), *Connection.Kinds.choices], widget=choice_input())
    search = forms.CharField(
        required=False, max_length=63, label="Name contains", widget=text_input("Part of the name")
    )


class NameFilter(Filter):
    """Which topics or groups of a cluster to list."""

    search = forms.CharField(
        required=False, max_length=249, label="Name contains", widget=text_input("Part of the name")
    )


class OffsetFilter(Filter):
    """Which topics of a group to list."""

    search = forms.CharField(
        required=False, max_length=249, label="Topic contains", widget=text_input("Part of the name")
    )


class ColumnFilter(Filter):
    """Which columns of a datasource to list."""

    search = forms.CharField(
        required=False, max_length=300, label="Name contains", widget=text_input("Part of the name")
    )


class MergeFilter(Filter):
    """Which merges of a datasource to list."""

    state = forms.ChoiceField(required=False, choices=[("", "Any"), *MergeState.choices], widget=choice_input())


class TopicFilter(NameFilter):
    """And whether Kafka's own are listed, too."""

    internal = forms.CharField(required=False, max_length=1, widget=forms.HiddenInput)


class DatasourceFilter(Filter):
    """Which datasources to list."""

    search = forms.CharField(
        required=False, max_length=200, label="Name contains", widget=text_input("Part of the name")
    )


class EventFilter(Filter):
    """Which events of a datasource to list."""

    kind = forms.ChoiceField(
        required=False, label="What", choices=[("", "Any"), *SourceEvent.Kind.choices], widget=choice_input()
    )
    alarm = forms.ChoiceField(
        required=False, choices=[("", "Any"), ("true", "With an alarm"), ("false", "Without")], widget=choice_input()
    )

    @property
    def alarms(self) -> bool | None:
        """None for both."""
        return {"true": True, "false": False}.get(self.chosen("alarm"))


class SegmentFilter(Window):
    """Which segments to list: those whose intervals touch a time."""

    since = forms.DateTimeField(required=False, label="From (UTC)", widget=time_input())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=time_input())
