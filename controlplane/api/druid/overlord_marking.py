"""The Overlord's addresses of ``marking``, with their own names in OpenAPI."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view

from controlplane.api.druid import marking


@extend_schema_view(
    post=extend_schema(operation_id="druid_overlord_mark_datasource_used"),
    delete=extend_schema(operation_id="druid_overlord_mark_datasource_unused"),
)
class DatasourceView(marking.MarkDatasourceView):
    pass


@extend_schema_view(post=extend_schema(operation_id="druid_overlord_mark_unused"))
class MarkUnusedView(marking.MarkUnusedView):
    pass


@extend_schema_view(post=extend_schema(operation_id="druid_overlord_mark_used"))
class MarkUsedView(marking.MarkUsedView):
    pass


@extend_schema_view(
    post=extend_schema(operation_id="druid_overlord_mark_segment_used"),
    delete=extend_schema(operation_id="druid_overlord_mark_segment_unused"),
)
class SegmentView(marking.MarkSegmentView):
    pass
