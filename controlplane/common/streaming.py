"""Answers that are too long to be held: made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse


def download(chunks: Iterator[bytes], filename: str, content_type: str) -> StreamingHttpResponse:
    """A file to save, a chunk at a time; each chunk may ask the database."""
    answer = StreamingHttpResponse(_following(chunks), content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    return answer


async def _following(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await sync_to_async(lambda: next(chunks, None))()) is not None:
        yield chunk
