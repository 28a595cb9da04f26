"""Addresses under /druid/coordinator/v1/, without a slash at the end, as Druid has them."""

from django.urls import path

from controlplane.api.druid import cluster, compaction, datasources, marking, metadata, rules, servers

app_name = "druid-coordinator"
urlpatterns = [
    path("leader", cluster.CoordinatorLeaderView.as_view(), name="leader"),
    path("isLeader", cluster.CoordinatorIsLeaderView.as_view(), name="is-leader"),
    path("servers", servers.ServersView.as_view(), name="servers"),
    path("tiers", servers.TiersView.as_view(), name="all-tiers"),
    path("loadqueue", servers.LoadQueueView.as_view(), name="load-queue"),
    path("config", servers.ConfigView.as_view(), name="config"),
    path("cluster", servers.ClusterView.as_view(), name="cluster"),
    path("intervals", servers.AllIntervalsView.as_view(), name="all-intervals"),
    path("datasources", datasources.DatasourcesView.as_view(), name="datasources"),
    path("datasources/<str:name>", datasources.DatasourceView.as_view(), name="datasource"),
    path("datasources/<str:name>/markUnused", marking.MarkUnusedView.as_view(), name="mark-unused"),
    path("datasources/<str:name>/markUsed", marking.MarkUsedView.as_view(), name="mark-used"),
    path("datasources/<str:name>/intervals", datasources.IntervalsView.as_view(), name="intervals"),
    path("datasources/<str:name>/intervals/<str:interval>", datasources.IntervalView.as_view(), name="interval"),
    path("datasources/<str:name>/segments", datasources.SegmentsView.as_view(), name="segments"),
    path("datasources/<str:name>/segments/<str:segment_id>", datasources.SegmentView.as_view(), name="segment"),
    path("datasources/<str:name>/tiers", datasources.TiersView.as_view(), name="tiers"),
    path("datasources/<str:name>/loadstatus", datasources.DatasourceLoadStatusView.as_view(), name="load-status-of"),
    path("loadstatus", datasources.LoadStatusView.as_view(), name="load-status"),
    path("metadata/datasources", metadata.MetadataDatasourcesView.as_view(), name="metadata-datasources"),
    path("metadata/datasources/<str:name>", metadata.MetadataDatasourceView.as_view(), name="metadata-datasource"),
    path(
        "metadata/datasources/<str:name>/segments",
        metadata.MetadataDatasourceSegmentsView.as_view(),
        name="metadata-segments-of",
    ),
    path(
        "metadata/datasources/<str:name>/segments/<str:segment_id>",
        metadata.MetadataSegmentView.as_view(),
        name="metadata-segment",
    ),
    path(
        "metadata/datasources/<str:name>/unusedSegments",
        metadata.UnusedSegmentsView.as_view(),
        name="metadata-unused-segments",
    ),
    path("rules", rules.RulesView.as_view(), name="rules"),
    path("rules/<str:name>", rules.RulesOfView.as_view(), name="rules-of"),
    path("rules/<str:name>/history", rules.RuleHistoryView.as_view(), name="rules-history"),
    path("metadata/segments", metadata.MetadataSegmentsView.as_view(), name="metadata-segments"),
    path("config/compaction", compaction.ConfigsView.as_view(), name="compaction-configs"),
    path("config/compaction/taskslots", compaction.TaskSlotsView.as_view(), name="compaction-task-slots"),
    path("config/compaction/<str:name>", compaction.ConfigView.as_view(), name="compaction-config"),
    path("config/compaction/<str:name>/history", compaction.HistoryView.as_view(), name="compaction-history"),
    path("compaction/status", compaction.StatusView.as_view(), name="compaction-status"),
    path("compaction/progress", compaction.ProgressView.as_view(), name="compaction-progress"),
]
