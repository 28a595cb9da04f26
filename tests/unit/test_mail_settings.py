"""Where mail goes, as one URL says it."""

from __future__ import annotations

import pytest

from controlplane.config.env import EnvironmentProblem
from controlplane.config.mail_settings import mail_settings, public_url


@pytest.mark.parametrize(
    ("url", "host", "port", "starttls", "tls"),
    [
        ("smtp://mail.example.org", "mail.example.org", 25, False, False),
        ("smtp+tls://mail.example.org", "mail.example.org", 587, True, False),
        ("smtps://mail.example.org/", "mail.example.org", 465, False, True),
        ("smtp+tls://u:p@mail.example.org:2525", "mail.example.org", 2525, True, False),
        ("smtp://u:p@127.0.0.1:1025", "127.0.0.1", 1025, False, False),
    ],
)
def test_a_url_says_where_mail_goes(url: str, host: str, port: int, starttls: bool, tls: bool) -> None:
    given = mail_settings(url)
    assert (given["EMAIL_HOST"], given["EMAIL_PORT"]) == (host, port)
    assert (given["EMAIL_USE_TLS"], given["EMAIL_USE_SSL"]) == (starttls, tls)


def test_a_login_may_hold_any_character() -> None:
    given = mail_settings("smtps://me%40example.org:a%2Fb%23%3A@mail.example.org")
    assert (given["EMAIL_HOST_USER"], given["EMAIL_HOST_PASSWORD"]) == ("me@example.org", "a/b#:")


def test_without_a_url_there_is_no_server() -> None:
    assert mail_settings("")["EMAIL_HOST"] == ""


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.org",
        "http://mail.example.org",
        "smtp://:25",
        "smtp://mail:99999",
        "smtp://[::1",
        "smtp://mail/inbox",
        "smtp://u:hunter2@mail.example.org",
        "smtps://u:hunter2#x@mail.example.org",
        "smtps://u:hunter2@mail.example.org?tls=0",
    ],
)
def test_another_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(EnvironmentProblem, match="HEADGATE_EMAIL_URL") as refused:
        mail_settings(url)
    assert "hunter2" not in str(refused.value)


def test_where_people_reach_the_site() -> None:
    assert public_url("https://headgate.example.org/") == "https://headgate.example.org"
    assert public_url("") == ""
    for url in ("headgate.example.org", "ftp://x", "https://x/headgate", "https://x:y", "https://"):
        with pytest.raises(EnvironmentProblem, match="HEADGATE_PUBLIC_URL"):
            public_url(url)
