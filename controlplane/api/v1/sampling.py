"""The sampler: previews the rows that a spec makes of some records."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView
from controlplane.api.v1.serializers import sampling as serializers
from controlplane.datasources.sampling import take_sample


class SamplerView(HeadgateView):
    @extend_schema(
        operation_id="sample",
        tags=["records"],
        parameters=[TEAM_PARAMETER],
        request=serializers.SampleBody,
        responses=serializers.SampleSerializer,
    )
    def post(self, request: Request) -> Response:
        """Decode some records, from a topic or pasted, with a spec that may be unfinished. Needs the role operator."""
        _, answer = take_sample(user=self.actor, document=request.data, team_name=self.team_name)
        return Response(serializers.SampleSerializer(answer).data)


@extend_schema(exclude=True)
class ShortSamplerView(SamplerView):
    """The sampler's other name, ``/api/sampler/``; OpenAPI describes the longer one."""
