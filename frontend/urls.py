"""The pages' addresses."""

from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import URLPattern, include, path
from django.urls.resolvers import URLResolver
from django.views.generic import RedirectView

from frontend.views import (
    accounts,
    audit,
    datasources,
    lag,
    quarantine,
    records,
    segments,
    share_groups,
    specs,
    supervisors,
    tasks,
    teams,
)

app_name = "frontend"


def favicon(request: HttpRequest) -> HttpResponse:
    """For what asks at the old address without reading the page."""
    return redirect(static("headgate/icon.svg"), permanent=True)


DATASOURCE = [
    path("", datasources.detail, name="datasource"),
    path("totals/", datasources.totals, name="datasource-totals"),
    path("timeline.json", segments.timeline, name="datasource-timeline"),
    path("intervals/", segments.intervals, name="datasource-intervals"),
    path("segments/", segments.segments, name="datasource-segments"),
    path("quarantine/", quarantine.index, name="datasource-quarantine"),
    path("quarantine/export/", quarantine.export, name="quarantine-export"),
    path("quarantine/confirm/", quarantine.confirm, name="quarantine-confirm"),
    path("quarantine/replay/", quarantine.replay, name="quarantine-replay"),
    path("quarantine/purge/", quarantine.purge, name="quarantine-purge"),
    path("quarantine/<int:number>/", quarantine.quarantined, name="quarantined"),
    path("quarantine/<int:number>/payload", quarantine.payload, name="quarantined-payload"),
    path("columns/", datasources.columns, name="datasource-columns"),
    path("progress/", datasources.progress_by_partition, name="datasource-progress"),
    path("events/", datasources.events, name="datasource-events"),
]
SUPERVISOR = [
    path("", supervisors.detail, name="supervisor"),
    path("live/", supervisors.live, name="supervisor-live"),
    path("lag/", lag.tables, name="supervisor-lag"),
    path("lag.json", lag.data, name="supervisor-lag-data"),
    path("spec/", supervisors.spec, name="supervisor-spec"),
    path("share-group/", share_groups.detail, name="share-group"),
    path("share-group/config/", share_groups.config, name="share-group-config"),
    path("share-group/apply/", share_groups.apply, name="share-group-apply"),
    path("confirm/<str:action>/", supervisors.confirm, name="supervisor-confirm"),
    path("suspend/", supervisors.suspend, name="supervisor-suspend"),
    path("resume/", supervisors.resume, name="supervisor-resume"),
    path("terminate/", supervisors.terminate, name="supervisor-terminate"),
    path("scale/", supervisors.scale, name="supervisor-scale"),
    path("handoff/", supervisors.handoff, name="supervisor-handoff"),
    path("reset/", supervisors.reset, name="supervisor-reset"),
]
TASK = [
    path("", tasks.detail, name="task"),
    path("live/", tasks.live, name="task-live"),
    path("errors/", tasks.errors, name="task-errors"),
    path("log/", tasks.log, name="task-log"),
    path("confirm/<str:action>/", tasks.confirm, name="task-confirm"),
    path("stop/", tasks.stop, name="task-stop"),
    path("finish/", tasks.finish, name="task-finish"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="frontend:datasources"), name="home"),
    path("favicon.ico", favicon, name="favicon"),
    path("login/", accounts.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("datasources/", datasources.index, name="datasources"),
    path("datasources/<str:name>/", include(DATASOURCE)),
    path("supervisors/", supervisors.index, name="supervisors"),
    path("supervisors/-/new/", specs.new_supervisor, name="new-supervisor"),
    path("supervisors/<str:supervisor_id>/", include(SUPERVISOR)),
    path("tasks/", tasks.index, name="tasks"),
    path("tasks/-/new/", specs.new_task, name="new-task"),
    path("tasks/<str:task_id>/", include(TASK)),
    path("records/", records.find, name="records"),
    path("teams/", teams.index, name="teams"),
    path("teams/<str:name>/<str:action>/", teams.answer, name="team-answer"),
    path("audit/", audit.index, name="audit"),
]
