"""A supervisor's autoscaler: what it decided, and what other parameters would have made of the recorded lag."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from pydantic import ValidationError

from controlplane.supervisors.autoscaler import auto_scaler, task_count
from controlplane.supervisors.lag import lag_over_time
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from controlplane.supervisors.simulation import simulate
from frontend.autoscaler_form import WINDOWS, SimulatorForm
from frontend.scaling_chart import drawing_of
from frontend.views.common import PageRequest, page
from frontend.views.supervisors import frame
from ingestion.specs.errors import error_text
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig

ACTIONS_SHOWN = 100
DEFAULT_MAX_INDEXERS = 10  # indexers, for a spec that says nothing


@page
def detail(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """Its decisions, and the simulator; what is tried stands in the address."""
    supervisor = get_supervisor(request.user, supervisor_id)
    scaler = auto_scaler(supervisor)
    initial = _initial_values(supervisor)
    has_query = bool(request.GET)
    form = SimulatorForm({**initial, **request.GET.dict()} if has_query else initial)
    context = {
        **frame(request, supervisor, "autoscaler"),
        "scaler": scaler,
        "wanted": task_count(supervisor),
        "scale_actions": supervisor.scale_actions.all()[:ACTIONS_SHOWN] if scaler else [],
        "form": form,
        **_simulate(supervisor, form),
    }
    return render(request, "supervisors/autoscaler.html", context)


def _initial_values(supervisor: Supervisor) -> dict[str, Any]:
    """The parameters that hold, or Druid's own where there are none."""
    config = supervisor.io_config.auto_scaler
    scaler_config = config or AutoScalerConfig(
        enableTaskAutoScaler=True, taskCountMin=1, taskCountMax=DEFAULT_MAX_INDEXERS
    )
    values = scaler_config.model_dump()
    return {"window": "1h", **{name: values[name] for name in SimulatorForm.base_fields if name in values}}


def _simulate(supervisor: Supervisor, form: SimulatorForm) -> dict[str, Any]:
    if not form.is_valid():
        return {}
    try:
        config = AutoScalerConfig(enableTaskAutoScaler=True, **form.parameters)
    except ValidationError as error:
        form.add_error(None, "; ".join(error_text(e) for e in error.errors()))
        return {}
    now = timezone.now()
    start = now - timedelta(minutes=WINDOWS[form.cleaned_data["window"]])
    current = supervisor.io_config.auto_scaler
    aggregate = (current and current.lagAggregate) or "SUM"
    series = lag_over_time(supervisor, start=start, end=now, aggregate=aggregate, ahead=True)
    samples = [(point.at, point.lag) for point in series.points]
    if not samples:
        return {}
    keeps_offsets = supervisor.io_config.traits.keeps_offsets
    begin_with = config.taskCountStart or config.bounds[0]
    simulation = simulate(
        config, samples, begin_with=begin_with, partitions=supervisor.partitions if keeps_offsets else None
    )
    actions = list(supervisor.scale_actions.filter(at__gte=samples[0][0]).order_by("at"))
    then = [(samples[0][0], actions[0].before), *((a.at, a.after) for a in actions)] if actions else []
    return {"simulation": simulation, "drawing": drawing_of(samples, simulation.counts, then)}
