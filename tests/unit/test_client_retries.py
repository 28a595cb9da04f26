"""What the Python client sends again, where it sends the token, and which error an answer is."""

from __future__ import annotations

import httpx2
import pytest

from headgate.client import (
    ChangedMeanwhile,
    Client,
    ClientError,
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotLoggedIn,
    ServerFailed,
    TryLater,
    Unreachable,
)
from headgate.client.session import Request, Session

URL = "https://headgate.example"


class Site:
    """Answers in turn, the last one again and again. An answer may be an error of the connection."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers, self.asked, self.waited = list(answers), list[httpx2.Request](), list[float]()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def session(self) -> Session:
        return Session(URL, "t0ken", transport=httpx2.MockTransport(self), sleep=self.waited.append)


def problem(status: int, **headers: str) -> httpx2.Response:
    body = {"detail": "No.", "errors": [{"pointer": "/a", "path": "a", "detail": "is wrong"}]}
    return httpx2.Response(status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


GOOD = httpx2.Response(200, json={"ok": 1})
GET, POST, KEYED = Request("GET", "/x"), Request("POST", "/x"), Request("POST", "/x", key="k")
GONE, REFUSED = httpx2.ReadError("gone"), httpx2.ConnectError("refused")


@pytest.mark.parametrize("request_", [GET, KEYED])
@pytest.mark.parametrize("fault", [GONE, REFUSED, problem(503), problem(502), problem(504), problem(429)])
def test_what_changes_nothing_twice_is_sent_again(request_: Request, fault: httpx2.Response | Exception) -> None:
    site = Site(fault, fault, GOOD)
    assert site.session.json(request_) == {"ok": 1}
    assert len(site.asked) == 3


@pytest.mark.parametrize("fault", [GONE, problem(503), problem(502), problem(504), problem(500)])
def test_a_change_without_a_key_is_sent_once(fault: httpx2.Response | Exception) -> None:
    site = Site(fault, GOOD)
    with pytest.raises(ClientError):
        site.session.json(POST)
    assert len(site.asked) == 1


@pytest.mark.parametrize("fault", [REFUSED, problem(429)])
def test_a_change_that_did_not_arrive_is_sent_again(fault: httpx2.Response | Exception) -> None:
    site = Site(fault, GOOD)
    assert site.session.json(POST) == {"ok": 1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 500])
def test_an_answer_that_stays_the_same_is_asked_for_once(status: int) -> None:
    site = Site(problem(status), GOOD)
    with pytest.raises(ClientError):
        site.session.json(GET)
    assert len(site.asked) == 1


def test_it_waits_as_long_as_the_site_says_within_reason() -> None:
    site = Site(problem(503, Retry_After="7"), problem(503, Retry_After="9999"), GOOD)
    site.session.json(GET)
    assert site.waited == [7.0, 30.0]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequest),
        (401, NotLoggedIn),
        (403, NotAllowed),
        (404, NotFound),
        (409, Conflict),
        (412, ChangedMeanwhile),
        (413, InvalidRequest),
        (418, ServerFailed),
        (429, TryLater),
        (500, ServerFailed),
        (503, TryLater),
    ],
)
def test_the_error_of_a_status(status: int, kind: type[ClientError]) -> None:
    with pytest.raises(kind) as caught:
        Site(problem(status)).session.json(GET)
    assert type(caught.value) is kind
    assert (str(caught.value), caught.value.faults, caught.value.status) == ("No.", ["a: is wrong"], status)


def test_the_token_goes_to_the_site_only() -> None:
    site = Site(httpx2.Response(302, headers={"Location": "https://evil.example/x"}))
    with pytest.raises(ServerFailed, match=r"evil\.example") as caught:
        site.session.json(GET)
    assert len(site.asked) == 1 and site.asked[0].headers["Authorization"] == "Bearer t0ken"
    assert "t0ken" not in str(caught.value)
    first = httpx2.Response(200, json={"results": [{"n": 1}], "next": "https://evil.example/x?cursor=2"})
    site = Site(first, httpx2.Response(200, json={"results": [{"n": 2}], "next": None}))
    assert list(site.session.pages(GET)) == [{"n": 1}, {"n": 2}]
    assert [str(request.url) for request in site.asked] == [f"{URL}/x", f"{URL}/x?cursor=2"]


@pytest.mark.parametrize("answer", [httpx2.Response(200, html="<p>hello"), httpx2.Response(200, json=[1])])
def test_another_site_is_recognized(answer: httpx2.Response) -> None:
    with pytest.raises(ServerFailed):
        list(Site(answer).session.pages(GET))


@pytest.mark.parametrize("url", ["headgate.example", "ftp://headgate.example", "https://", ""])
def test_an_address_must_be_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_URL", raising=False)
    with pytest.raises(ClientError):
        Client(url, "t")


def test_no_message_holds_a_token_or_a_password() -> None:
    for url, token in ((URL, "two\nlines"), (URL, "tökén"), ("https://ann:hush@headgate.example", "t")):
        with pytest.raises(ClientError) as caught:
            Client(url, token)
        assert token not in str(caught.value).split() and "hush" not in str(caught.value)
    site = Site(GOOD)
    Session(URL, "t0ken\n", transport=httpx2.MockTransport(site)).json(GET)
    assert site.asked[0].headers["Authorization"] == "Bearer t0ken"


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "/x", body={"a": float("inf")}),
        Request("POST", "/x", body={"a": b"bytes"}),
        Request("POST", "/x", key="two\nlines"),
        Request("POST", "/x", headers={"X-Headgate-Team": "tëam"}),
    ],
)
def test_what_can_not_be_sent_is_said(request_: Request) -> None:
    site = Site(GOOD)
    with pytest.raises(InvalidRequest):
        site.session.json(request_)
    assert site.asked == []


def test_no_answer_says_where() -> None:
    with pytest.raises(Unreachable, match=URL):
        Site(GONE).session.json(GET)
