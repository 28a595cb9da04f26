"""How the records are written: the form of ``ioConfig.inputFormat``."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from controlplane.common.strict_json import strict_json
from controlplane.loading.documents import Document, value_at, with_value
from frontend.load.fields import check, select, text
from frontend.load.forms import AS_WRITTEN, IO, StepForm


class ParseForm(StepForm):
    form = forms.ChoiceField(
        label="Format",
        choices=[
            ("json", "JSON objects"),
            ("csv", "CSV"),
            ("tsv", "TSV or another delimiter"),
            ("avro_stream", "Avro, schema registry"),
            ("protobuf", "Protobuf, schema registry"),
            (AS_WRITTEN, "Custom (JSON)"),
        ],
        widget=select(),
    )
    wrapped = forms.BooleanField(
        label="Add key, headers and Kafka's time as columns (kafka.key, kafka.header.…, kafka.timestamp)",
        required=False,
        widget=check(),
    )
    columns = forms.CharField(label="Columns, comma-separated", required=False, widget=text("id, name"))
    header = forms.BooleanField(label="Has header row", required=False, widget=check())
    delimiter = forms.CharField(label="Delimiter", required=False, strip=False, max_length=10, widget=text("tab"))
    registry = forms.CharField(
        label="Schema registry: URL or connection name",
        required=False,
        widget=text("http://registry:8081"),
    )
    flatten = forms.MultipleChoiceField(label="Nested values as fields", required=False)

    def __init__(
        self,
        data: Any,
        document: Document,
        prefix: str | None = None,
        nested: list[tuple[str, str]] | None = None,
    ) -> None:
        super().__init__(data, document, prefix)
        offered = _flatten_choices(nested or [], self.initial["flatten"])
        if nested is None and data is not None:  # what was ticked is judged by the spec's own rules
            sent = data.getlist(self.add_prefix("flatten"))
            offered += [(c, c) for c in sent if c not in dict(offered) and _is_field(c)]
        self.fields["flatten"].choices = offered  # type: ignore[attr-defined]
        self.fields["flatten"].widget = forms.CheckboxSelectMultiple({"class": "form-check-input"}, offered)

    def read_document(self, document: Document) -> dict[str, Any]:
        written, wrapped = _value_format(document)
        kind = written.get("type")
        registry = written.get(_DECODERS.get(kind or "", ""), {})
        plain = kind in ("json", "csv", "tsv") or registry.get("type") == "schema_registry"
        delimiter = written.get("delimiter", "")
        return {
            "form": "json" if not kind else kind if plain else AS_WRITTEN,
            "wrapped": wrapped,
            "columns": ", ".join(map(str, written.get("columns") or [])),
            "header": bool(written.get("findColumnsFromHeader")),
            "delimiter": "tab" if delimiter == "\t" else delimiter,
            "registry": registry.get("url") or registry.get("connection") or "" if isinstance(registry, dict) else "",
            "flatten": [_flatten_key(f) for f in _flattened(written)],
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        form = data.get("form")
        if form in ("csv", "tsv") and not data.get("columns") and not data.get("header"):
            self.add_error("columns", "Enter the columns, or tick “Has header row”.")
        if form in _DECODERS and not data.get("registry"):
            self.add_error("registry", "Enter the schema registry's URL or a connection name.")
        return data

    def edited(self) -> Document:
        written, _ = _value_format(self.document)
        data = self.cleaned_data
        if data["form"] != AS_WRITTEN:
            written = self._flat({**(written if written.get("type") == data["form"] else {}), **self._own()})
        return with_format(self.document, written, data["wrapped"])

    def _own(self) -> dict[str, Any]:
        data, form = self.cleaned_data, self.cleaned_data["form"]
        if form in _DECODERS:
            before = _value_format(self.document)[0].get(_DECODERS[form])
            registry = before if isinstance(before, dict) and before.get("type") == "schema_registry" else {}
            return {"type": form, _DECODERS[form]: _registry(registry, data["registry"].strip())}
        if form == "json":
            return {"type": "json"}
        input_format: dict[str, Any] = {"type": form}
        names = [name.strip() for name in data["columns"].split(",") if name.strip()]
        input_format |= {"columns": names} if names else {"findColumnsFromHeader": True}
        if form == "tsv":
            input_format["delimiter"] = "\t" if data["delimiter"] in ("", "tab") else data["delimiter"]
        return input_format

    def _flat(self, written: dict[str, Any]) -> dict[str, Any]:
        if written["type"] in ("csv", "tsv"):
            return {k: v for k, v in written.items() if k != "flattenSpec"}
        ticked = [strict_json(key) for key in self.cleaned_data["flatten"] if key.startswith("{")]
        others = [f for f in _flattened(written) if not _is_tree(f)]
        fields = [*others, *(field for field in ticked if field not in others)]
        if not fields:
            return {k: v for k, v in written.items() if k != "flattenSpec"}
        return {**written, "flattenSpec": {**(written.get("flattenSpec") or {}), "fields": fields}}


_DECODERS = {"avro_stream": "avroBytesDecoder", "protobuf": "protoBytesDecoder"}


def _registry(before: dict[str, Any], written: str) -> dict[str, Any]:
    """A connection holds all that its registry needs; an address may have more beside it."""
    if not written.startswith(("http://", "https://")):
        return {"type": "schema_registry", "connection": written}
    others = {k: v for k, v in before.items() if k not in ("urls", "connection")}
    return {**others, "type": "schema_registry", "url": written}


def flatten_field(nodes: list[str]) -> dict[str, Any]:
    """The field of a flattenSpec that leads to a nested value, whatever its names are."""
    return {"type": "tree", "name": "_".join(nodes), "nodes": nodes}


def _flatten_key(field: Any) -> str:
    """A field as text, equal for equal fields: PostgreSQL keeps an object's names in an order of its own."""
    return json.dumps(field, ensure_ascii=False, sort_keys=True)


def _flatten_choices(nested: list[tuple[str, str]], chosen: list[str]) -> list[tuple[str, str]]:
    """``nested``: the records' nested values. One that the spec already reads, by whatever name, is there once."""
    labels = {_path_name(key): label for key, label in nested}
    chosen_names = {_path_name(key) for key in chosen}
    free = [(key, label) for key, label in nested if _path_name(key) not in chosen_names]
    return [*((key, labels.get(_path_name(key), _path_name(key))) for key in chosen), *free]


def _is_field(key: str) -> bool:
    """Whether what a browser sent is one of a flattenSpec."""
    try:
        return isinstance(strict_json(key), dict)
    except ValueError:
        return False


def _path_name(key: str) -> str:
    try:
        nodes = strict_json(key).get("nodes", [])
    except (ValueError, AttributeError):
        return key
    return ".".join(map(str, nodes)) or key


def flatten_choice(nodes: list[str], label: str) -> tuple[str, str]:
    """A nested value that may be ticked."""
    return _flatten_key(flatten_field(nodes)), label


def _flattened(written: dict[str, Any]) -> list[Any]:
    spec = written.get("flattenSpec")
    fields = spec.get("fields") if isinstance(spec, dict) else None
    return fields if isinstance(fields, list) else []


def _is_tree(field: Any) -> bool:
    return isinstance(field, dict) and field.get("type") == "tree"


def _value_format(document: Document) -> tuple[dict[str, Any], bool]:
    """The format of the values, and whether Kafka's own things are read, too."""
    written = value_at(document, (*IO, "inputFormat")) or {}
    if written.get("type") == "kafka":
        inner = written.get("valueFormat")
        return (inner if isinstance(inner, dict) else {}), True
    return written, False


def with_format(document: Document, written: dict[str, Any], wrapped: bool) -> Document:
    """The document whose values are written so."""
    before = value_at(document, (*IO, "inputFormat")) or {}
    if wrapped:
        outer = before if before.get("type") == "kafka" else {"type": "kafka"}
        if not outer.get("headerFormat"):
            outer = {**outer, "headerFormat": {"type": "string"}}
        written = {**outer, "valueFormat": written}
    return with_value(document, (*IO, "inputFormat"), written)
