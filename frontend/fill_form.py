"""The form of a backfill's offsets: by partition, or from one position to another in all partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django import forms

from frontend.forms import PositionInput
from ingestion.specs.kafka.positions import EXAMPLES

_LINE = re.compile(r"\s*(\d{1,9})\s*[:=,\s]\s*(\d{1,19})\s*[-–,\s]\s*(\d{1,19})\s*", re.ASCII)


def _position(label: str) -> PositionInput:
    attrs = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
    return PositionInput(label=label, required=False, max_length=100, widget=forms.TextInput(attrs=attrs))


def lines_of(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Line number, partition, start and end of each line. Raises ``ValidationError`` for one that can't be read."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise forms.ValidationError(f"Line {number} must be partition: start-end, such as 0: 1200-5000.")
        partition, start, end = map(int, found.groups())
        yield number, partition, start, end


class FillForm(forms.Form):
    """Offsets to fill. ``wanted``: as fields of a ``boundedStreamConfig``."""

    offsets = forms.CharField(
        label="One partition, its first offset and its end per line, such as 0: 1200-5000. The end is not read.",
        required=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"class": "form-control font-monospace", "rows": 3, "placeholder": "0: 1200-5000"}),
    )
    start = _position(f"Or the start of all partitions: {EXAMPLES}.")
    end = _position("The end of all partitions, written in the same way.")

    def clean_offsets(self) -> dict[int, tuple[int, int]]:
        """Partition → start and end; says which line can't be read."""
        ranges: dict[int, tuple[int, int]] = {}
        for number, partition, start, end in lines_of(self.cleaned_data["offsets"]):
            if partition in ranges:
                raise forms.ValidationError(f"Line {number} repeats partition {partition}. A backfill reads one range.")
            ranges[partition] = (start, end)
        return ranges

    def clean(self) -> dict[str, Any]:
        """Offsets, or both positions."""
        cleaned = super().clean() or {}
        positions = [name for name in ("start", "end") if cleaned.get(name)]
        if self.errors:
            return cleaned
        if cleaned.get("offsets") and positions:
            self.add_error("offsets", "Leave this empty, or leave both positions empty.")
        elif not cleaned.get("offsets") and len(positions) < 2:
            missing = "end" if positions == ["start"] else "start" if positions else "offsets"
            self.add_error(missing, "Give offsets, or a start and an end.")
        return cleaned

    @property
    def wanted(self) -> dict[str, Any]:
        """Of a form that is valid."""
        ranges = self.cleaned_data["offsets"]
        if not ranges:
            start, end = (str(self.cleaned_data[name]) for name in ("start", "end"))
            return {"startPosition": start, "endPosition": end}
        return {
            "startSequenceNumbers": {str(p): start for p, (start, _) in ranges.items()},
            "endSequenceNumbers": {str(p): end for p, (_, end) in ranges.items()},
        }


class IndexersForm(forms.Form):
    """With how many indexers a backfill begins."""

    task_count = forms.IntegerField(
        label="Indexers of the backfill",
        required=False,
        min_value=1,
        max_value=1000,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
