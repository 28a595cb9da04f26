"""Answers that are too long to be held: made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse


class Download(StreamingHttpResponse):
    """Its chunks may ask the database: where the server is asynchronous, each is made in a thread."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = iter(self)
        while (chunk := await sync_to_async(lambda: next(chunks, None))()) is not None:
            yield chunk


def download(chunks: Iterator[bytes], filename: str, content_type: str) -> Download:
    """A file to save, a chunk at a time; each chunk may ask the database."""
    answer = Download(chunks, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    return answer
