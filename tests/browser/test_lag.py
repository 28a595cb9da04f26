"""The chart of a supervisor's lag in a browser: drawing, keyboard, windows, nothing to draw."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from controlplane.lag.models import LagSample
from tests.browser.site import log_in_as
from tests.support.django_cast import Cast, make_cast


@pytest.fixture
def site(transactional_db: None) -> Cast:
    """The cast, with 100 samples of lag: they end now, and the lag of sample n is n × 10."""
    cast = make_cast()
    now = timezone.now().replace(microsecond=0)
    LagSample.objects.bulk_create(
        LagSample(
            source=cast.source,
            resolution_s=5,
            at=now - timedelta(seconds=5 * (100 - n)),
            observed_at=now - timedelta(seconds=5 * (100 - n)),
            lag=n * 10,
            partitions=[n * 10, 0],
            in_flight=n,
            processed=n * 500,
            redelivered=n * 5,
        )
        for n in range(100)
    )
    return cast


def test_lag_is_drawn_and_read_out(page: Page, site: Cast, live_server: LiveServer) -> None:
    log_in_as(page, live_server.url, site.users["viewer"])
    page.goto(f"{live_server.url}/supervisors/flights/")
    section = page.locator("[data-lag]")
    expect(section).to_have_attribute("data-points", "100")
    expect(section.locator("[data-lag-status]")).to_have_text(
        "The last lag seen is 990, the largest 990, in 100 samples."
    )
    section.locator("[data-lag-chart]").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(section.locator("[data-lag-announce]")).to_contain_text("UTC: lag 10, 8.3 rows per second")  # in a minute
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(section.locator("[data-lag-announce]")).to_contain_text("UTC: lag 120, 100 rows per second")
    expect(section.locator(".timeline-tip")).to_contain_text("Redelivered/s1")
    section.get_by_label("Time window").select_option("7d")
    expect(section.locator(".lag-empty")).to_be_visible()
    section.get_by_role("link", name="As tables").click()
    table = page.get_by_role("table", name="Partitions with their lag")
    expect(table.locator("[aria-sort=descending]")).to_have_text("Lag")
    table.get_by_role("link", name="Partition", exact=True).click()
    expect(table.locator("[aria-sort=ascending]")).to_have_text("Partition")
    expect(table.get_by_role("rowheader").first).to_have_text("0")
