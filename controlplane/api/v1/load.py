"""The wizard's steps: drafts, and previews of their records. See ``controlplane.loading``."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import loading as serializers
from controlplane.loading import services, step_previews
from controlplane.loading.field_profiles import field_profiles, nested_fields
from controlplane.loading.models import Draft
from controlplane.loading.selectors import drafts_of, get_draft
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor

TAGS = ["load data"]


class DraftsView(HeadgateView):
    @extend_schema(
        operation_id="list_drafts",
        tags=TAGS,
        parameters=[PageQuery],
        responses=page_schema(serializers.DraftSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your own drafts, most recently changed first."""
        query = query_of(request, PageQuery)
        keys = [Key("created_at", datetime, descending=True), Key("id", uuid.UUID, descending=True)]
        return page_response(page_of(request, drafts_of(self.actor), keys, query), serializers.DraftSerializer)

    @extend_schema(
        operation_id="begin_draft",
        tags=TAGS,
        request=serializers.BeginBody,
        responses={201: serializers.DraftSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a draft. Needs the role operator in a team."""
        body = body_of(request, serializers.BeginBody)
        if body.get("supervisor"):
            draft = services.begin_change(user=self.actor, supervisor=get_supervisor(self.actor, body["supervisor"]))
        else:
            draft = services.begin_draft(user=self.actor, team_name=body.get("team"), document=body.get("document"))
        return Response(
            serializers.DraftSerializer(draft).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("api:draft", args=[draft.pk])},
        )


class OneDraftView(HeadgateView):
    """Base of views of one draft. The caller must have access to it."""

    def draft(self, draft_id: uuid.UUID) -> Draft:
        return get_draft(self.actor, draft_id)


class DraftView(OneDraftView):
    @extend_schema(operation_id="get_draft", tags=TAGS, responses=serializers.DraftSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """One draft of one of your teams."""
        return Response(serializers.DraftSerializer(self.draft(draft_id)).data)

    @extend_schema(
        operation_id="change_draft",
        tags=TAGS,
        request=serializers.DraftChangeBody,
        responses=serializers.DraftSerializer,
    )
    def put(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Replace the draft's spec. It may be unfinished."""
        document = body_of(request, serializers.DraftChangeBody)["document"]
        draft = services.change_draft(user=self.actor, draft=self.draft(draft_id), document=document)
        return Response(serializers.DraftSerializer(draft).data)

    @extend_schema(operation_id="delete_draft", tags=TAGS, responses={204: None})
    def delete(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Delete the draft and its stored records. Only for its owner and the team's admins."""
        services.delete_draft(user=self.actor, draft=self.draft(draft_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RecordsView(OneDraftView):
    @extend_schema(operation_id="read_draft_records", tags=TAGS, request=None, responses=serializers.ReadSerializer)
    def post(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Read the newest records of all partitions: at most 500 records or 2 MiB. They are stored for an hour."""
        return Response(serializers.ReadSerializer(step_previews.read_records(self.actor, self.draft(draft_id))).data)


class FormatsView(OneDraftView):
    @extend_schema(operation_id="guess_formats", tags=TAGS, responses=serializers.GuessesSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Possible input formats of the records, each with the share of records that it can read."""
        formats = step_previews.format_guesses(self.actor, self.draft(draft_id))
        return Response(serializers.GuessesSerializer({"formats": formats}).data)


class TimesView(OneDraftView):
    @extend_schema(operation_id="guess_times", tags=TAGS, responses=serializers.TimesSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Fields that may be the timestamp column, best first."""
        times = step_previews.time_guesses(self.actor, self.draft(draft_id))
        return Response(serializers.TimesSerializer({"times": times}).data)


class RowsView(OneDraftView):
    @extend_schema(operation_id="try_draft", tags=TAGS, responses=serializers.TriedSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Preview the rows that the unfinished spec makes of the records, with a profile of their fields."""
        _, answer = step_previews.sample_rows(self.actor, self.draft(draft_id))
        sample = dict(serializers.SampleSerializer(answer).data)
        more = serializers.FieldsSerializer(
            {"profiles": field_profiles(answer.fields, answer.read), "nested": nested_fields(answer.read)}
        )
        return Response({**sample, **more.data})


class OutlookView(OneDraftView):
    @extend_schema(operation_id="get_outlook", tags=TAGS, responses=serializers.OutlookSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Estimate the first minute from the newest records: its rows and segments, and the indexers that it needs."""
        return Response(
            serializers.OutlookSerializer(step_previews.draft_preview(self.actor, self.draft(draft_id))).data
        )


class DryRunView(OneDraftView):
    @extend_schema(operation_id="dry_run", tags=TAGS, responses=serializers.DryRunSerializer)
    def get(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Compare the rows that the current and the changed spec make of the newest records."""
        return Response(
            serializers.DryRunSerializer(step_previews.dry_run_change(self.actor, self.draft(draft_id))).data
        )


class SubmitView(OneDraftView):
    @extend_schema(
        operation_id="submit_draft",
        tags=TAGS,
        request=serializers.SubmitDraftBody,
        responses={201: serializers.SubmittedSerializer},
    )
    def post(self, request: Request, draft_id: uuid.UUID) -> Response:
        """Create a supervisor from the draft (role admin), or a task that runs once (operator). Deletes the draft."""
        as_task = body_of(request, serializers.SubmitDraftBody)["as_task"]
        submitted = services.submit_draft(user=self.actor, draft=self.draft(draft_id), as_task=as_task)
        kind = "supervisor" if isinstance(submitted, Supervisor) else "task"
        return Response(
            serializers.SubmittedSerializer({"kind": kind, "id": submitted.pk}).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse(f"api:{kind}", args=[submitted.pk])},
        )
