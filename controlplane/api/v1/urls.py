"""Addresses under /api/v1/. All end with a slash; without it they work as well (see ``api.fallback``)."""

from django.urls import path

from controlplane.api.v1 import (
    auth,
    capacity,
    datasources,
    lag,
    quarantine,
    records,
    sampling,
    share_groups,
    supervisors,
    tasks,
    teams,
)

app_name = "api"
urlpatterns = [
    path("auth/login/", auth.LoginView.as_view(), name="login"),
    path("auth/logout/", auth.LogoutView.as_view(), name="logout"),
    path("tokens/", auth.TokensView.as_view(), name="tokens"),
    path("tokens/<str:token_id>/", auth.TokenView.as_view(), name="token"),
    path("teams/", teams.TeamsView.as_view(), name="teams"),
    path("teams/<str:name>/members/", teams.MembersView.as_view(), name="members"),
    path("teams/<str:name>/members/<str:username>/", teams.MemberView.as_view(), name="member"),
    path("teams/<str:name>/audit/", teams.AuditView.as_view(), name="audit"),
    path("datasources/", datasources.DatasourcesView.as_view(), name="datasources"),
    path("datasources/<str:name>/", datasources.DatasourceView.as_view(), name="datasource"),
    path("datasources/<str:name>/segments/", datasources.SegmentsView.as_view(), name="segments"),
    path("datasources/<str:name>/timeline/", datasources.TimelineView.as_view(), name="timeline"),
    path("datasources/<str:name>/quarantine/", quarantine.QuarantineView.as_view(), name="quarantine"),
    path("datasources/<str:name>/quarantine/<int:number>/", quarantine.QuarantinedView.as_view(), name="quarantined"),
    path("datasources/<str:name>/quarantine/export/", quarantine.ExportView.as_view(), name="quarantine-export"),
    path("datasources/<str:name>/quarantine/replay/", quarantine.ReplayView.as_view(), name="quarantine-replay"),
    path("datasources/<str:name>/quarantine/purge/", quarantine.PurgeView.as_view(), name="quarantine-purge"),
    path("datasources/<str:name>/events/", datasources.EventsView.as_view(), name="events"),
    path("datasources/<str:name>/progress/", datasources.ProgressView.as_view(), name="progress"),
    path("supervisors/", supervisors.SupervisorsView.as_view(), name="supervisors"),
    # No id is "-": it stands for all of them.
    path("supervisors/-/suspend/", supervisors.SuspendAllView.as_view(), name="suspend-all"),
    path("supervisors/-/resume/", supervisors.ResumeAllView.as_view(), name="resume-all"),
    path("supervisors/-/terminate/", supervisors.TerminateAllView.as_view(), name="terminate-all"),
    path("supervisors/<str:supervisor_id>/", supervisors.SupervisorView.as_view(), name="supervisor"),
    path("supervisors/<str:supervisor_id>/versions/", supervisors.VersionsView.as_view(), name="versions"),
    path("supervisors/<str:supervisor_id>/stats/", supervisors.StatsView.as_view(), name="stats"),
    path("supervisors/<str:supervisor_id>/lag/", lag.LagView.as_view(), name="lag"),
    path("supervisors/<str:supervisor_id>/lag/series/", lag.LagSeriesView.as_view(), name="lag-series"),
    path("supervisors/<str:supervisor_id>/suspend/", supervisors.SuspendView.as_view(), name="suspend"),
    path("supervisors/<str:supervisor_id>/resume/", supervisors.ResumeView.as_view(), name="resume"),
    path("supervisors/<str:supervisor_id>/terminate/", supervisors.TerminateView.as_view(), name="terminate"),
    path("supervisors/<str:supervisor_id>/reset/", supervisors.ResetView.as_view(), name="reset"),
    path("supervisors/<str:supervisor_id>/handoff/", supervisors.HandOffView.as_view(), name="handoff"),
    path("supervisors/<str:supervisor_id>/scale/", supervisors.ScaleView.as_view(), name="scale"),
    path(
        "supervisors/<str:supervisor_id>/scale-actions/", supervisors.ScaleActionsView.as_view(), name="scale-actions"
    ),
    path("supervisors/<str:supervisor_id>/share-group/", share_groups.ShareGroupView.as_view(), name="share-group"),
    path(
        "supervisors/<str:supervisor_id>/share-group/config/",
        share_groups.GroupConfigView.as_view(),
        name="share-group-config",
    ),
    path("tasks/", tasks.TasksView.as_view(), name="tasks"),
    path("tasks/<str:task_id>/", tasks.TaskView.as_view(), name="task"),
    path("tasks/<str:task_id>/report/", tasks.ReportView.as_view(), name="report"),
    path("tasks/<str:task_id>/log/", tasks.LogView.as_view(), name="log"),
    path("tasks/<str:task_id>/stop/", tasks.StopView.as_view(), name="stop"),
    path("capacity/", capacity.CapacityView.as_view(), name="capacity"),
    path("records/", records.RecordsView.as_view(), name="records"),
    path("sampler/", sampling.SamplerView.as_view(), name="sampler"),
    path("validate/", records.ValidateView.as_view(), name="validate"),
]
