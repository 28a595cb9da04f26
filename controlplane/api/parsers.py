"""Request bodies: JSON that can be stored, of bounded size and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from controlplane.common.strict_json import MAX_BYTES, strict_json


class TooLarge(APIException):
    """The body is too large."""

    status_code = 413
    default_detail = f"The body is larger than {MAX_BYTES} bytes."
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """UTF-8 JSON: see ``strict_json``."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise TooLarge
        try:
            return strict_json(body.decode("utf-8"))
        except UnicodeDecodeError:
            raise ParseError("The body is not UTF-8.") from None
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {error}"[:500]) from None
