"""Icons of the sprite ``static/headgate/icons.svg``, which the build makes of those that templates and code name."""

from __future__ import annotations

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString


def icon_html(name: str, label: str = "") -> SafeString:
    """Decorative, unless it has a label to be read out."""
    use = format_html('<use href="{}#{}"/>', static("headgate/icons.svg"), name)
    if label:
        return format_html('<svg class="icon" role="img" aria-label="{}">{}</svg>', label, use)
    return format_html('<svg class="icon" aria-hidden="true" focusable="false">{}</svg>', use)
