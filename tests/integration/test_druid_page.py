"""The page that says how much of Druid means the same: its table of addresses is what the site answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from tests.support.django_cast import Cast

PAGE = Path(__file__).parent.parent.parent / "docs" / "druid.md"
ROW = re.compile(r"\| `(GET|POST|DELETE) (\S+)` \| (same|without effect|refused) \|")


def rows() -> list[tuple[str, ...]]:
    table = PAGE.read_text(encoding="utf-8").partition("<!-- addresses: begin -->")[2]
    lines = table.partition("<!-- addresses: end -->")[0].strip().splitlines()[2:]
    found = [ROW.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if match is None]
    return [match.groups() for match in found if match]


@pytest.mark.parametrize(("method", "address", "verdict"), rows())
def test_every_address_answers_as_the_page_says(
    clients: dict[str, Client], cast: Cast, method: str, address: str, verdict: str
) -> None:
    whole = address if address.startswith("/") else f"/druid/indexer/v1/{address}"
    path = whole.format(task_id=cast.task.pk, supervisor_id=cast.supervisor.pk, name="flights", host="h")
    answer = clients["owner"].generic(method, path)
    if verdict == "refused":
        refused_there = answer.status_code == 404 and answer.json()["errorCode"] == "notFound"
        assert refused_there or answer.status_code == 405, answer.content
    else:
        assert answer.status_code not in (404, 405), answer.content
    if verdict == "without effect":
        assert answer.json() == {}
