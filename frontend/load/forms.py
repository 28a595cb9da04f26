"""The forms of the wizard's first steps, and what all of them are: a part of the document, edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from controlplane.common.errors import FieldError
from controlplane.loading.documents import Document, value_at, with_value
from frontend.load.fields import area, json_object, json_text, select, text

IO, SCHEMA = ("spec", "ioConfig"), ("spec", "dataSchema")
AS_WRITTEN = "as_written"


class StepForm(forms.Form):
    """Base. ``document``: what the draft holds; ``edited`` is what it holds with this form's values."""

    def __init__(self, data: Any, document: Document, prefix: str | None = None) -> None:
        """``prefix``: of its fields' names, where several forms are sent together."""
        self.document = document
        self.document_values = self.read_document(document)
        sent = {name: _as_sent(self.base_fields[name], value) for name, value in self.document_values.items()}
        super().__init__(data, initial=sent, prefix=prefix)

    places: dict[str, str] = {}  # its fields that one place of the spec is made of, with that place's JSON pointer

    def add_faults(self, faults: Iterable[FieldError]) -> None:
        """What is wrong with the spec stands at the field that says it, too."""
        for fault in faults:
            for name, place in self.places.items():
                if f"{fault.pointer}/".startswith(f"{place}/"):
                    self.errors.setdefault(name, self.error_class()).append(fault.message)

    def read_document(self, document: Document) -> dict[str, Any]:
        """The values that the form begins with."""
        raise NotImplementedError

    def edited(self) -> Document:
        """Of a valid form."""
        raise NotImplementedError

    def value_to_store(self, name: str) -> Any:
        """The value of a field; as the document has it, if nobody changed the field."""
        return self.cleaned_data[name] if name in self.changed_data else self.document_values[name]


def _as_sent(field: forms.Field, value: Any) -> Any:
    """What a browser sends of a text that nobody changed: a field of one line loses its line breaks."""
    if value is None or not isinstance(field, forms.CharField):
        return value
    lines = str(value).replace("\r\n", "\n").replace("\r", "\n")
    return field.to_python(lines.replace("\n", "") if isinstance(field.widget, forms.TextInput) else lines)


def keep_choice(field: forms.Field, value: Any) -> None:
    """A choice that the document has made, and the form does not know, stays one."""
    choices = [(k, v) for k, v in field.choices]  # type: ignore[attr-defined]  # a ChoiceField's
    if isinstance(value, str) and value not in dict(choices):
        field.choices = [*choices, (value, value)]  # type: ignore[attr-defined]


class ConnectionForm(StepForm):
    connection = forms.ChoiceField(label="Connection", required=False, widget=select())
    servers = forms.CharField(
        label="Servers (bootstrap.servers)",
        required=False,
        max_length=4000,
        widget=text("kafka-broker:9092"),
        help_text="Bootstrap servers, comma-separated. Not needed with a saved connection.",
    )
    properties = forms.CharField(
        label="Other properties (JSON)",
        required=False,
        max_length=100_000,
        widget=area(5),
        help_text="Such as security.protocol and sasl.mechanism. Passwords are encrypted and never shown again.",
    )

    def __init__(
        self, data: Any, document: Document, prefix: str | None = None, names: Iterable[str] = (), by_name: str = ""
    ) -> None:
        """``names``: of the connections. ``by_name``: the team, if it takes connections by their names only."""
        super().__init__(data, document, prefix)
        self.by_name = by_name
        none = "Choose one" if by_name else "None (enter bootstrap servers below)"
        self.fields["connection"].choices = [("", none), *((name, name) for name in names)]  # type: ignore[attr-defined]
        keep_choice(self.fields["connection"], self.initial["connection"])
        if by_name:
            self._only_names()

    def _only_names(self) -> None:
        help_text = f"Team {self.by_name} allows saved connections only. Its specs may not name servers."
        self.fields["connection"].help_text = help_text
        del self.fields["servers"]
        if not self.initial["properties"]:  # what a draft has beside its servers may be changed, or taken out
            del self.fields["properties"]

    def read_document(self, document: Document) -> dict[str, Any]:
        properties = dict(value_at(document, (*IO, "consumerProperties")) or {})
        servers = properties.pop("bootstrap.servers", "")
        connection = value_at(document, (*IO, "connection")) or ""
        return {"connection": connection, "servers": servers, "properties": json_text(properties)}

    def clean_properties(self) -> dict[str, Any]:
        properties = json_object(self.cleaned_data["properties"])
        if "bootstrap.servers" in properties:
            message = "Leave bootstrap.servers out. The connection has its own."
            raise forms.ValidationError(message if self.by_name else "Write bootstrap.servers into the field Servers.")
        return properties

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if self.by_name and not data.get("connection"):
            message = f"spec.ioConfig.connection: team {self.by_name} allows saved connections only. Choose one."
            self.add_error("connection", message)
        elif not data.get("connection") and not data.get("servers"):
            self.add_error("servers", "Choose a connection, or enter servers.")
        return data

    def edited(self) -> Document:
        data = self.cleaned_data
        servers = {} if data["connection"] else {"bootstrap.servers": self.value_to_store("servers")}
        document = with_value(self.document, (*IO, "connection"), data["connection"] or None)
        return with_value(document, (*IO, "consumerProperties"), {**data.get("properties", {}), **servers} or None)


class TopicForm(StepForm):
    topic = forms.CharField(label="Topic", max_length=249, widget=text("orders"))

    def read_document(self, document: Document) -> dict[str, Any]:
        return {"topic": value_at(document, (*IO, "topic")) or ""}

    def edited(self) -> Document:
        return with_topic(self.document, self.cleaned_data["topic"].strip())


def with_topic(document: Document, topic: str) -> Document:
    """It reads that one; its datasource has the topic's name until it is given another one."""
    before, name = value_at(document, (*IO, "topic")), value_at(document, (*SCHEMA, "dataSource"))
    document = with_value(document, (*IO, "topic"), topic)
    if name and name != _named_after(before):
        return document
    return with_value(document, (*SCHEMA, "dataSource"), _named_after(topic))


def _named_after(topic: Any) -> str | None:
    return str(topic or "").lstrip("._-") or None
