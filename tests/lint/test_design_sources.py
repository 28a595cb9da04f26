"""The pages' colours can be read on each other, and the sprite has the icons in use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from frontend.context import SECTIONS
from tests.lint.sources import PROJECT, files, no_faults, places, text_of

TOKENS = PROJECT / "frontend" / "assets" / "src" / "styles" / "tokens.css"
TONES = ("ok", "work", "wait", "need", "bad", "quiet")
PAIRS = [(f"--hg-{tone}", f"--hg-{under}") for tone in TONES for under in (f"{tone}-bg", "surface", "page", "hover")]
PAIRS += [
    (f"--hg-{ink}", f"--hg-{under}") for ink in ("ink", "soft") for under in ("surface", "page", "sunken", "hover")
]
PAIRS += [("--hg-on-accent", "--hg-accent"), ("--hg-on-accent", "--hg-accent-strong")]

# A colour, a share of one, another token, or a shadow: nothing that has a size on the page.
COLOUR = re.compile(
    r"--[\w-]+: (#[0-9a-f]{3,6}|\d+, \d+, \d+|rgba\([\d., ]+\)|var\(--hg-[\w-]+\));"
    r"|--hg-shadow[\w-]*: (none|[\dpx ]+ rgba\([\d., ]+\));"
)


def tokens(theme: str) -> dict[str, str]:
    """The colours of a theme by name."""
    block = text_of(TOKENS).split(f'[data-bs-theme="{theme}"] {{')[1].split("\n}")[0]
    return dict(re.findall(r"(--hg-[\w-]+): (#[0-9a-f]{3,6});", block))


def luminance(colour: str) -> float:
    """Of WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def hard_to_read(theme: str) -> Iterator[str]:
    """The pairs of colours whose contrast is below that of WCAG 2.2, AA."""
    colours = tokens(theme)
    for text, under in PAIRS:
        low, high = sorted((luminance(colours[text]), luminance(colours[under])))
        if (contrast := (high + 0.05) / (low + 0.05)) < 4.5:
            yield f"{theme}: {text} on {under}, {contrast:.2f}"


def test_text_can_be_read_on_its_background() -> None:
    faults = (fault for theme in ("light", "dark") for fault in hard_to_read(theme))
    no_faults(faults, "the contrast of text and background is 4.5 or more")


def not_of_colours() -> Iterator[str]:
    """What a theme says besides colours and shadows, and rules elsewhere that depend on the theme."""
    for theme in ("light", "dark"):
        block = text_of(TOKENS).split(f'[data-bs-theme="{theme}"] {{')[1].split("\n}")[0]
        yield from (line for line in block.splitlines() if line.strip() and not COLOUR.fullmatch(line.strip()))
    for path in files("*.css", "frontend/assets/src"):
        if path != TOKENS:
            yield from places(r".*(bs-theme|prefers-color-scheme).*", path)


def test_a_theme_says_colours_alone() -> None:
    """So a page that fits its screen in one theme does in the other: ``test_every_page`` measures it in one."""
    no_faults(not_of_colours(), "the themes are in tokens.css and set colours alone")


def test_the_sprite_has_every_icon_in_use_and_no_other() -> None:
    sprite = set(re.findall(r'<symbol id="([\w-]+)"', text_of(PROJECT / "frontend/static/headgate/icons.svg")))
    used = {section.icon for section in SECTIONS}
    for template in files("*.html", "templates"):
        used |= set(re.findall(r'\bicon[ =]"([\w-]+)"', text_of(template)))
    for code in files("*.py", "frontend"):
        used |= set(re.findall(r'\bicon(?:: str)? ?= ?"([\w-]+)"', text_of(code)))
    assert sprite == used, "run npm run build in frontend/assets"
