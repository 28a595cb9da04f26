"""One segment and its file."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView
from controlplane.api.v1.serializers import segments as serializers
from controlplane.datasources.masked_querysets import conceal
from controlplane.datasources.selectors import find_datasource
from controlplane.publishing.selectors.segment_detail import segment_detail
from controlplane.retention.storage_summary import find_segment, segment_or_killed
from controlplane.segments.models import Segment
from controlplane.segments.newest_rows import segment_file


class SegmentView(HeadgateView):
    @extend_schema(operation_id="get_segment", tags=["datasources"], responses=serializers.SegmentStorySerializer)
    def get(self, request: Request, name: str, segment_id: str) -> Response:
        """One segment by its id or Druid's identifier: its state, its merges and its records."""
        segment = segment_or_killed(find_datasource(self.actor, name), segment_id)
        is_present = isinstance(segment, Segment)
        story = {
            "segment": segment if is_present else None,
            "killed": None if is_present else segment,
            "story": segment_detail(segment),
        }
        conceal(self.actor, [segment] if isinstance(segment, Segment) else [])
        return Response(serializers.SegmentStorySerializer(story).data)


class SegmentFileView(HeadgateView):
    @extend_schema(operation_id="get_segment_file", tags=["datasources"], responses=serializers.SegmentFileSerializer)
    def get(self, request: Request, name: str, segment_id: str) -> Response:
        """The columns from the Parquet file's footer and the latest rows. Masks apply."""
        segment = find_segment(find_datasource(self.actor, name), segment_id)
        return Response(serializers.SegmentFileSerializer(segment_file(user=self.actor, segment=segment)).data)
