"""The site around its pages: login, navigation, errors, and the search for a record."""

from __future__ import annotations

from html import unescape

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from frontend.login_throttle import FAILURES_PER_NAME
from tests.support.django_cast import PASSWORD, Cast, browsing_as
from tests.support.html import parsed

LOGIN = {"username": "viewer", "password": PASSWORD}
pytestmark = pytest.mark.usefixtures("empty_cache")


def test_login_leads_on_to_the_page_that_was_asked_for(client: Client, cast: Cast) -> None:
    asked = client.get("/datasources/flights/segments/?from=2013-01-01")
    assert asked.status_code == 302
    page = parsed(client.get(asked["Location"]))
    hidden = page.one("input", name="next").attributes["value"]
    answer = client.post("/login/", {**LOGIN, "next": hidden})
    assert answer["Location"] == "/datasources/flights/segments/?from=2013-01-01"


@pytest.mark.parametrize("next_page", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"])
def test_login_leads_to_no_other_site(client: Client, cast: Cast, next_page: str) -> None:
    assert client.post("/login/", {**LOGIN, "next": next_page})["Location"] == "/"


def test_a_wrong_password_says_no_more_than_that(client: Client, cast: Cast) -> None:
    known = client.post("/login/", {**LOGIN, "password": "wrong"})
    unknown = client.post("/login/", {"username": "nobody", "password": "wrong"})
    alerts = [parsed(a).one("div", class_="alert-danger").text for a in (known, unknown)]
    assert alerts[0] == alerts[1]
    assert "_auth_user_id" not in client.session


def test_after_many_failures_a_login_waits_whatever_the_password(client: Client, cast: Cast) -> None:
    for _ in range(FAILURES_PER_NAME):
        assert client.post("/login/", {**LOGIN, "password": "wrong"}).status_code == 200
    answer = client.post("/login/", LOGIN)
    assert (answer.status_code, answer["Retry-After"]) == (429, "300")
    page = parsed(answer)
    assert "Too many failed attempts" in page.one("div", class_="alert-warning", role="alert").text
    assert page.one("input", name="username").attributes["value"] == "viewer"
    assert client.post("/login/", {"username": "owner", "password": PASSWORD}).status_code == 302


def test_a_login_that_works_clears_the_count(client: Client, cast: Cast) -> None:
    for _ in range(3):
        for _ in range(FAILURES_PER_NAME - 1):
            client.post("/login/", {**LOGIN, "password": "wrong"})
        assert client.post("/login/", LOGIN).status_code == 302
        client.logout()


@pytest.mark.parametrize("username", ["", "\x00", "ö" * 400, "a b"])
def test_any_name_may_be_tried(client: Client, cast: Cast, username: str) -> None:
    assert client.post("/login/", {"username": username, "password": "x"}).status_code == 200


def test_logout_needs_a_post(cast: Cast) -> None:
    client = browsing_as(cast, "viewer")
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/datasources/").status_code == 302


def test_every_section_is_in_the_navigation_and_knows_that_it_is_shown(cast: Cast) -> None:
    viewer = browsing_as(cast, "viewer")
    for address in ("/datasources/", "/supervisors/", "/tasks/", "/records/"):
        page = parsed(viewer.get(address))
        navigation = page.one("nav", aria_label="Site")
        [here] = navigation.all("a", aria_current="page")
        assert here.attributes["href"] == address
        assert {"/datasources/", "/supervisors/", "/tasks/", "/records/", "/api/docs/"} <= {
            a.attributes["href"] for a in navigation.all("a")
        }
    assert "Team alpha: viewer" in navigation.text


def test_every_page_has_one_heading_a_title_a_language_and_a_way_past_the_navigation(cast: Cast) -> None:
    owner = browsing_as(cast, "owner")
    addresses = [
        "/datasources/",
        "/datasources/flights/",
        "/supervisors/",
        "/supervisors/flights/",
        "/tasks/",
        f"/tasks/{cast.task.pk}/",
        "/tasks/-/new/",
        "/records/",
        "/nowhere/",
    ]
    for address in addresses:
        page = parsed(owner.get(address))
        assert len(page.one("main").all("h1")) == 1, address
        assert page.one("head").one("title").text.endswith("· Headgate")
        assert page.one("html").attributes["lang"] == "en"
        assert page.one("a", class_="skip-link").attributes["href"] == f"#{page.one('main').attributes['id']}"
        named = {e.attributes["for"] for e in page.all("label")}
        fields = [*page.all("input"), *page.all("select"), *page.all("textarea")]
        unnamed = [f for f in fields if f.attributes.get("type") != "hidden" and f.attributes["id"] not in named]
        assert unnamed == [], address


def test_everything_a_page_loads_is_served_by_this_site(cast: Cast) -> None:
    page = parsed(browsing_as(cast, "owner").get("/datasources/flights/"))
    loaded = [e.attributes["src"] for e in [*page.all("script"), *page.all("img")]]
    loaded += [e.attributes["href"] for e in page.all("link")]
    assert len(loaded) >= 8
    for address in loaded:
        assert address.startswith("/static/")
        assert finders.find(address.removeprefix("/static/")), address


@pytest.mark.parametrize(
    ("address", "status", "title"),
    [("/nowhere/", 404, "Not found"), ("/datasources/nope/", 404, "Not found"), ("/tasks/a%00b/", 404, "Not found")],
)
def test_error_pages_look_like_the_site(cast: Cast, address: str, status: int, title: str) -> None:
    answer = browsing_as(cast, "viewer").get(address)
    assert answer.status_code == status
    page = parsed(answer)
    assert page.one("h1").text == title
    assert page.one("nav", aria_label="Site").all("a", href="/datasources/")


def test_a_failure_of_ours_is_a_page_too(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr("frontend.views.datasources.list_datasources", broken)
    answer = browsing_as(cast, "viewer").get("/datasources/")
    assert answer.status_code == 500
    assert parsed(answer).one("h1").text == "Something went wrong"
    assert "a secret detail" not in answer.content.decode()


@pytest.mark.parametrize(
    ("offset", "outcomes"),
    [(100, ["stored"]), (7, ["unparseable"]), (10, ["thrown_away"]), (3, ["stored", "duplicate"]), (705, ["unknown"])],
)
def test_where_is_my_record(cast: Cast, offset: int, outcomes: list[str]) -> None:
    viewer = browsing_as(cast, "viewer")
    page = parsed(viewer.get("/records/", {"topic": "flights-topic", "partition": "0", "offset": str(offset)}))
    fates = [s for s in page.all("section") if "data-fate" in s.attributes]
    assert [f.attributes["data-fate"] for f in fates] == outcomes
    if outcomes == ["stored"]:
        assert cast.segments[1].path in fates[0].text
    if outcomes == ["unparseable"]:
        [link] = [a for a in fates[0].all("a") if a.text == "View quarantined record"]
        assert "Malformed JSON" in unescape(viewer.get(link.attributes["href"]).content.decode())


@pytest.mark.parametrize(
    "query",
    [
        {"topic": "t"},
        {"topic": "t", "partition": "x", "offset": "1"},
        {"topic": "t", "partition": "-1", "offset": "1"},
        {"topic": "t", "partition": "0", "offset": "99999999999999999999"},
        {"topic": "x" * 300, "partition": "0", "offset": "0"},
        {"topic": "\x00", "partition": "0", "offset": "0"},
    ],
)
def test_a_place_that_is_none_is_explained_at_its_field(cast: Cast, query: dict[str, str]) -> None:
    answer = browsing_as(cast, "viewer").get("/records/", query)
    assert answer.status_code == 400
    assert parsed(answer).one("main").one("form").all("div", role="alert")


def test_another_team_s_topic_is_unknown(cast: Cast) -> None:
    query = {"topic": "flights-topic", "partition": "0", "offset": "100"}
    answer = browsing_as(cast, "outsider").get("/records/", query)
    assert answer.status_code == 404
    assert parsed(answer).one("main").all("section") == []


def test_the_old_address_of_the_icon_leads_to_it(client: Client, db: None) -> None:
    assert client.get("/favicon.ico")["Location"] == "/static/headgate/icon.svg"


TASK, WIZARD, SUPERVISOR = "/tasks/-/new/", "/load/", "/supervisors/-/new/"


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ("owner", ({TASK, WIZARD}, {SUPERVISOR})),
        ("operator", ({TASK, WIZARD}, set())),
        ("viewer", (set(), set())),
        ("superuser", ({TASK, WIZARD}, {SUPERVISOR})),
    ],
)
def test_what_a_role_may_submit_is_what_it_is_offered(
    cast: Cast, role: str, offered: tuple[set[str], set[str]]
) -> None:
    """In the list of datasources, and then in the wizard: a draft ends as a task, or as a supervisor."""

    def on(page: str) -> set[str]:
        main = parsed(browsing_as(cast, role).get(page)).one("main")
        return {a.attributes["href"] for a in main.all("a")} & {TASK, WIZARD, SUPERVISOR}

    assert (on("/datasources/"), on("/load/") - {WIZARD}) == offered


def test_who_is_in_no_team_is_told_whom_to_ask(cast: Cast) -> None:
    cast.users["viewer"].memberships.all().delete()
    page = parsed(browsing_as(cast, "viewer").get("/datasources/"))
    assert "Ask an administrator of this site" in page.one("main").text


def test_no_page_is_kept_by_a_cache(cast: Cast) -> None:
    answer = browsing_as(cast, "viewer").get("/datasources/flights/")
    assert set(answer["Cache-Control"].split(", ")) == {"private", "no-cache"}
