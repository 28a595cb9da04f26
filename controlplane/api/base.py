"""The base of all REST views: JSON in and out, whatever ``Accept`` says; the user; query parameters; problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.api.parsers import StrictJSONParser
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.common.text import storable
from controlplane.teams.models import User

TEAM_HEADER = "X-Headgate-Team"


class FirstRenderer(BaseContentNegotiation):
    """Always takes the endpoint's only renderer. An unusual ``Accept`` header does not refuse a request."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        kind = (request.content_type or "").split(";")[0].strip().lower()
        return next((p for p in parsers if p.media_type == kind), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type


class FaultSerializer(serializers.Serializer[Any]):
    """One error in the input."""

    pointer = serializers.CharField(
        help_text="RFC 6901 pointer into the body. Empty for the whole body and for a query parameter."
    )
    detail = serializers.CharField()
    path = serializers.CharField(help_text="The same place in a form for people, or the query parameter's name.")


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457)."""

    # Only OpenAPI uses this: ``problems.Problem.body`` writes the answer.

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    errors = FaultSerializer(many=True)  # type: ignore[assignment]  # the stubs know Serializer.errors only


class ProblemSchema(AutoSchema):
    """Adds to every operation the problems that all operations can answer."""

    problem: Any = ProblemSerializer
    problem_type = "application/problem+json"

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        text = "An error (RFC 9457): 400 with all errors of the input, 401, 403, 404, 409, 413, 415, 429, 503."
        answer = OpenApiResponse(self.problem, description=text)
        describe: Any = self._get_response_for_code  # drf-spectacular leaves it without types
        bodies["default"] = describe(answer, "default", media_types=[self.problem_type])
        return bodies


class HeadgateView(APIView):
    """Base of the REST views. ``actor`` is the user. Selectors and services check permissions."""

    parser_classes = [StrictJSONParser]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = FirstRenderer
    metadata_class = None
    schema = ProblemSchema()
    how_to_log_in = "You are not logged in. Send 'Authorization: Bearer TOKEN', with a token from /api/v1/auth/login/."

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        _measure_chunked(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Forbids caches to store answers: each user sees different data, and their permissions change."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.setdefault("Cache-Control", "no-store")
        return answer

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> NoReturn:
        """Tells users without a login how to log in."""
        if request.authenticators and not request.successful_authenticator:
            raise NotAuthenticated(self.how_to_log_in)
        super().permission_denied(request, message, code)

    @property
    def actor(self) -> User:
        user = self.request.user
        if not isinstance(user, User):
            raise NotAuthenticated
        return user

    @property
    def team_name(self) -> str | None:
        """The team that the caller named for a new datasource. Raises ``InvalidInput``."""
        name = self.request.headers.get(TEAM_HEADER)
        if name is not None and not storable(name):
            raise InvalidInput(f"The header {TEAM_HEADER} contains characters that are not allowed in a name.")
        return name or None

    def flag(self, name: str) -> bool:
        """A Druid-style flag: true if the parameter is given, with any value. See ``is_true`` for the others."""
        return name in self.request.query_params

    def is_true(self, name: str) -> bool:
        """A parameter that Druid reads as a boolean: everything except ``true`` is false."""
        return self.request.query_params.get(name, "").lower() == "true"


def _measure_chunked(request: Request) -> None:
    """Sets the length of a chunked body, because DRF treats a request without a length as one without a body."""
    raw = request._request
    if "chunked" in raw.META.get("HTTP_TRANSFER_ENCODING", "").lower() and not raw.META.get("CONTENT_LENGTH"):
        raw.META["CONTENT_LENGTH"] = str(len(raw.body))


class BodySerializer(serializers.Serializer[Any]):
    """A request's body. Unknown fields are errors."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError({name: ["unknown field"] for name in unknown})
        return super().to_internal_value(data)


class QuerySerializer(serializers.Serializer[Any]):
    """Query parameters: typed, each at most once. Unknown ones are errors."""


def body_of(request: Request, kind: type[BodySerializer]) -> dict[str, Any]:
    """The validated body. Raises DRF's ``ValidationError``."""
    serializer = kind(data=request.data)
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data


def query_of(request: Request, kind: type[QuerySerializer]) -> dict[str, Any]:
    """The validated query parameters. Raises ``InvalidInput`` with all errors."""
    serializer = kind(data=request.query_params.dict())
    faults = [
        FieldError("", f"unknown parameter; known are {', '.join(sorted(serializer.fields))}", name)
        for name in request.query_params
        if name not in serializer.fields
    ]
    faults += [
        FieldError("", "is given more than once", name)
        for name, values in request.query_params.lists()
        if len(values) > 1 and name in serializer.fields
    ]
    if not serializer.is_valid():
        faults += [
            FieldError("", str(message), "" if name == "non_field_errors" else name)
            for name, messages in serializer.errors.items()
            for message in messages
        ]
    if faults:
        raise InvalidInput("The query parameters have errors.", faults)
    data: dict[str, Any] = serializer.validated_data
    return data


TEAM_PARAMETER = OpenApiParameter(
    TEAM_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The team that will own a new object. Required if you are in several teams.",
)
