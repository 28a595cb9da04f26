"""The forms of connections: fields for what is usual, JSON for the rest. A stored secret is never filled in again."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django import forms

from controlplane.common.errors import HeadgateError
from controlplane.common.spec_text import spec_text
from controlplane.common.strict_json import strict_json
from controlplane.connections.models import Connection
from controlplane.teams.models import User
from controlplane.teams.selectors import teams_administered
from ingestion.specs.inputs.connection import Kind
from ingestion.specs.kafka.connection_name import RULE
from ingestion.specs.kafka.properties import MECHANISMS

_PROTOCOLS = (
    ("PLAINTEXT", "None: no TLS, no login"),
    ("SSL", "TLS, optionally with a client certificate"),
    ("SASL_PLAINTEXT", "User and password, without TLS"),
    ("SASL_SSL", "User and password, with TLS"),
)
LONGEST_TEXT = 256 * 1024


def _line(**attrs: Any) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", **attrs})


def _text(rows: int, **attrs: Any) -> forms.Textarea:
    more = {"spellcheck": "false", "autocomplete": "off"}
    return forms.Textarea(attrs={"class": "form-control font-monospace", "rows": rows, **more, **attrs})


def _select() -> forms.Select:
    return forms.Select(attrs={"class": "form-select"})


def _password() -> forms.PasswordInput:
    return forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"})


class ConnectionForm(forms.Form):
    """What all kinds have. ``stored``: the connection that is changed; None for a new one."""

    KIND: ClassVar[Kind]
    FIELDS: ClassVar[dict[str, str]]  # property → its field
    SECRETS: ClassVar[dict[str, str]]  # field of a secret → the name under which it is stored

    team = forms.ChoiceField(label="Team", widget=_select())
    name = forms.CharField(
        label="Name",
        max_length=63,
        widget=_line(placeholder="orders-kafka"),
        help_text=f"{RULE[:1].upper()}{RULE[1:]}.",
    )
    description = forms.CharField(label="Description", required=False, max_length=500, widget=_line())
    more = forms.CharField(
        label="Other properties (JSON)",
        required=False,
        max_length=LONGEST_TEXT,
        strip=False,
        widget=_text(4, placeholder='{"client.id": "headgate"}'),
    )

    def __init__(self, *args: Any, user: User, stored: Connection | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = stored
        self.order_fields([n for n in self.fields if n != "more"])
        if stored is None:
            names = list(teams_administered(user).values_list("name", flat=True))
            self.fields["team"].choices = [(n, n) for n in names]  # type: ignore[attr-defined]
        else:
            del self.fields["team"], self.fields["name"]
            self._mark_stored(stored)

    def _mark_stored(self, stored: Connection) -> None:
        for field, secret in self.SECRETS.items():
            if secret in stored.secret_names:
                self.fields[
                    field
                ].help_text = "Stored. Leave empty to keep it; enter it again if you change servers or login."

    def clean_more(self) -> dict[str, Any]:
        """The properties beside the fields."""
        text = self.cleaned_data["more"]
        try:
            properties = strict_json(text) if text.strip() else {}
        except json.JSONDecodeError as error:
            raise forms.ValidationError(f"Not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
        except ValueError as error:
            raise forms.ValidationError(f"JSON not accepted: {error}.") from None
        if not isinstance(properties, dict):
            raise forms.ValidationError('It must be an object, such as {"client.id": "headgate"}.')
        return properties

    def place(self, error: HeadgateError) -> None:
        """Put an error's faults at the fields that they are about."""
        if not error.errors:
            self.add_error(None, error.detail)
        for fault in error.errors:
            name = fault.pointer.removeprefix("/properties/").replace("~1", "/").replace("~0", "~")
            field = self.FIELDS.get(name, name.strip("/"))
            if field in self.fields:
                self.add_error(field, fault.message)
            else:
                self.add_error("more" if fault.pointer.startswith("/properties/") else None, f"{name}: {fault.message}")

    @property
    def properties(self) -> dict[str, Any]:
        """Of a valid form, as a service takes them."""
        raise NotImplementedError

    @classmethod
    def values_of(cls, stored: Connection) -> dict[str, Any]:
        """What the fields begin with."""
        raise NotImplementedError


class KafkaForm(ConnectionForm):
    """A Kafka cluster."""

    KIND = Kind.KAFKA
    FIELDS = {
        "bootstrap.servers": "servers",
        "security.protocol": "protocol",
        "sasl.mechanism": "mechanism",
        "sasl.username": "username",
        "sasl.password": "password",
        "ssl.ca.pem": "authorities",
        "ssl.certificate.pem": "certificate",
        "ssl.key.pem": "key",
        "ssl.key.password": "key_password",
    }
    SECRETS = {"password": "sasl.password", "key": "ssl.key.pem", "key_password": "ssl.key.password"}

    servers = forms.CharField(
        label="Bootstrap servers", max_length=10_000, widget=_line(placeholder="kafka-1:9092,kafka-2:9092")
    )
    protocol = forms.ChoiceField(label="Security", choices=_PROTOCOLS, widget=_select())
    mechanism = forms.ChoiceField(
        label="SASL mechanism",
        required=False,
        choices=[("", "None"), *((m, m) for m in MECHANISMS)],
        widget=_select(),
        help_text="For OAUTHBEARER and AWS_MSK_IAM, enter the properties under Other properties (JSON) below.",
    )
    username = forms.CharField(label="User", required=False, max_length=1000, widget=_line())
    password = forms.CharField(label="Password", required=False, max_length=10_000, strip=False, widget=_password())
    authorities = forms.CharField(
        label="Trusted authorities (PEM)",
        required=False,
        max_length=LONGEST_TEXT,
        widget=_text(3),
        help_text="Leave empty to use the system's authorities.",
    )
    certificate = forms.CharField(
        label="Client certificate (PEM)", required=False, max_length=LONGEST_TEXT, widget=_text(3)
    )
    key = forms.CharField(label="Client key (PEM)", required=False, max_length=LONGEST_TEXT, widget=_text(3))
    key_password = forms.CharField(
        label="Key password", required=False, max_length=10_000, strip=False, widget=_password()
    )

    @property
    def properties(self) -> dict[str, Any]:
        entered = {name: self.cleaned_data.get(field, "") for name, field in self.FIELDS.items()}
        return {**self.cleaned_data["more"], **{name: value for name, value in entered.items() if value}}

    @classmethod
    def values_of(cls, stored: Connection) -> dict[str, Any]:
        values = {f: stored.properties[n] for n, f in cls.FIELDS.items() if isinstance(stored.properties.get(n), str)}
        rest = {n: v for n, v in stored.properties.items() if cls.FIELDS.get(n) not in values}
        return {
            **values,
            "mechanism": str(values.get("mechanism", "")).upper(),
            "protocol": str(values.get("protocol", "PLAINTEXT")).upper(),
            "description": stored.description,
            "more": spec_text(rest) if rest else "",
        }


class RegistryForm(ConnectionForm):
    """A schema registry."""

    KIND = Kind.SCHEMA_REGISTRY
    FIELDS = {
        "url": "urls",
        "urls": "urls",
        "config/basic.auth.user.info": "password",
        "config/bearer.auth.token": "token",
    }
    SECRETS = {"password": "/config/basic.auth.user.info", "token": "/config/bearer.auth.token"}

    urls = forms.CharField(
        label="Addresses, one per line",
        max_length=10_000,
        widget=_text(2, placeholder="https://registry:8081"),
        help_text="Instances of one registry. Headgate tries them in this order.",
    )
    login = forms.ChoiceField(
        label="Login",
        choices=[("", "None"), ("basic", "User and password"), ("token", "Token")],
        required=False,
        widget=_select(),
    )
    username = forms.CharField(label="User", required=False, max_length=1000, widget=_line())
    password = forms.CharField(label="Password", required=False, max_length=10_000, strip=False, widget=_password())
    token = forms.CharField(label="Token", required=False, max_length=10_000, widget=_password())

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("login") == "basic" and bool(cleaned.get("username")) != bool(cleaned.get("password")):
            self.add_error(
                "password" if cleaned.get("username") else "username", "Enter both user and password, or neither."
            )
        return cleaned

    @property
    def properties(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        addresses = [line.strip() for line in cleaned["urls"].splitlines() if line.strip()]
        more = dict(cleaned["more"])
        address = {"url": addresses[0]} if len(addresses) == 1 else {"urls": addresses}
        return {**more, **address, "config": {**more.get("config", {}), **self._login()}}

    def _login(self) -> dict[str, str]:
        cleaned = self.cleaned_data
        if cleaned["login"] == "basic":
            user = f"{cleaned['username']}:{cleaned['password']}"
            return {
                "basic.auth.credentials.source": "USER_INFO",
                **({"basic.auth.user.info": user} if cleaned["password"] else {}),
            }
        if cleaned["login"] == "token":
            token = {"bearer.auth.token": cleaned["token"]} if cleaned["token"] else {}
            return {"bearer.auth.credentials.source": "STATIC_TOKEN", **token}
        return {}

    @classmethod
    def values_of(cls, stored: Connection) -> dict[str, Any]:
        config = dict(stored.properties.get("config", {}))
        basic, token = (config.pop(f"{n}.auth.credentials.source", None) for n in ("basic", "bearer"))
        rest = {"config": config, "headers": stored.properties.get("headers", {})}
        rest = {name: value for name, value in rest.items() if value}
        return {
            "urls": "\n".join(stored.addresses),
            "login": "basic" if basic else "token" if token else "",
            "description": stored.description,
            "more": spec_text(rest) if rest else "",
        }


FORMS: dict[Kind, type[ConnectionForm]] = {form.KIND: form for form in (KafkaForm, RegistryForm)}
