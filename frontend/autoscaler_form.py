"""The form of the autoscaler's simulator."""

from __future__ import annotations

from typing import Any

from django import forms

WINDOWS = {"1h": 60, "6h": 360, "1d": 1440}  # minutes
_FRACTION_ATTRS = {"class": "form-control", "step": "any"}


def _integer_field(label: str, least: int = 1, most: int = 10**12) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, min_value=least, max_value=most, widget=forms.NumberInput(attrs={"class": "form-control"})
    )


def _fraction_field(label: str) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=0, max_value=1, widget=forms.NumberInput(attrs=_FRACTION_ATTRS))


class SimulatorForm(forms.Form):
    """Parameters of an autoscaler, as the spec calls them, and how far back to try them."""

    window = forms.ChoiceField(
        label="Lag of",
        choices=[("1h", "the last hour"), ("6h", "the last 6 hours"), ("1d", "the last day")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    taskCountMin = _integer_field("taskCountMin", most=1000)
    taskCountMax = _integer_field("taskCountMax", most=1000)
    scaleOutThreshold = _integer_field("scaleOutThreshold, offsets", least=0)
    triggerScaleOutFractionThreshold = _fraction_field("triggerScaleOutFractionThreshold")
    scaleOutStep = _integer_field("scaleOutStep", most=1000)
    scaleInThreshold = _integer_field("scaleInThreshold, offsets", least=0)
    triggerScaleInFractionThreshold = _fraction_field("triggerScaleInFractionThreshold")
    scaleInStep = _integer_field("scaleInStep", most=1000)
    lagCollectionIntervalMillis = _integer_field("lagCollectionIntervalMillis")
    lagCollectionRangeMillis = _integer_field("lagCollectionRangeMillis", most=172_800_000)
    scaleActionPeriodMillis = _integer_field("scaleActionPeriodMillis")
    scaleActionStartDelayMillis = _integer_field("scaleActionStartDelayMillis", least=0)
    minTriggerScaleActionFrequencyMillis = _integer_field("minTriggerScaleActionFrequencyMillis", least=0)

    @property
    def parameters(self) -> dict[str, Any]:
        """Of a valid form, for an ``AutoScalerConfig``."""
        return {name: value for name, value in self.cleaned_data.items() if name != "window"}
