"""The keyboard alone: from one thing to the next, as who has no mouse goes."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.support.django_cast import PASSWORD

MAX_TABS = 80
SKIP = "Skip to the content"
# What is focused: its name as it is read out, and whether a mark around it can be seen, which an editor draws a moment
# later than a field.
FOCUSED = """async () => {
    const e = document.activeElement;
    const around = (part) => {
        const s = getComputedStyle(part);
        return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none";
    };
    const seen = () => e === document.body || [e, e.closest(".cm-editor")].some((part) => part && around(part));
    for (let frame = 0; frame < 60 && !seen(); frame++) await new Promise(requestAnimationFrame);
    const label = e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "";
    return [label.trim().replace(/\\s+/g, " "), seen()];
}"""


def tab_to(page: Page, name: str, through_header: bool = False) -> None:
    """Tab by tab until it is focused; each that is passed must show that it has the focus.

    A new page's header is passed over, as by its first link, which would leave its mark in the address.
    """
    passed = []
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        label, marked = page.evaluate(FOCUSED)
        assert marked, f"nothing shows that {label!r} is focused"
        if label == name:
            return
        if label == SKIP and not through_header:
            page.locator("main").focus()
        passed.append(label)
    raise AssertionError(f"no way to {name!r} past {passed}")


def press(page: Page, name: str) -> None:
    """Tab to a button or link, and press Enter."""
    tab_to(page, name)
    page.keyboard.press("Enter")


def write(page: Page, name: str, text: str) -> None:
    """Tab to a field, and write instead of what is in it."""
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def log_in(page: Page, site: Site, name: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(site.url)
    page.get_by_label("Username").focus()  # it has the focus without this where the browser allows it
    page.keyboard.type(name)
    write(page, "Password", PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    page.wait_for_load_state()  # its scripts hear keys then
