"""Threads on lines of evidence, and requests for a review, over REST."""

from collections.abc import Callable
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView
from pocs.evidence import selectors, services
from pocs.evidence.api.discussion_serializers import (
    CommentSerializer,
    CommentWriteSerializer,
    LineSerializer,
    ReviewRequestSerializer,
    ReviewRequestWriteSerializer,
    ThreadSerializer,
    ThreadWriteSerializer,
)
from pocs.evidence.content import check_content
from pocs.evidence.discussion import discussion_of
from pocs.evidence.lines import lines_of
from pocs.evidence.models import ReviewRequest, Thread


def checked(serializer_class: Any, request: Request) -> dict[str, Any]:
    """The validated body; a wrong one is answered with its pointers."""
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class RevisionLinesView(ActorAPIView):
    @extend_schema(responses=LineSerializer(many=True), summary="The lines of a revision, to comment on")
    def get(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        check_content(revision)
        return Response(LineSerializer(lines_of(revision).values(), many=True).data)


class RevisionThreadsView(ActorAPIView):
    @extend_schema(
        responses=ThreadSerializer(many=True), summary="Discussions of a revision, those carried to it too"
    )
    def get(self, request: Request, pk: int) -> Response:
        found = discussion_of(selectors.revision_get(self.actor, pk))
        placed = [thread for threads in found.by_field.values() for thread in threads]
        rows = [_row(item.thread, True, item.changed) for item in placed]
        rows += [_row(item.thread, False, False) for item in found.gone]
        return Response(ThreadSerializer(rows, many=True).data)

    @extend_schema(
        request=ThreadWriteSerializer,
        responses={201: ThreadSerializer},
        summary="Comment on a line; opens a discussion",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        given = checked(ThreadWriteSerializer, request)
        thread = services.thread_open(actor=self.actor, revision=revision, **given)
        data = ThreadSerializer(_row(thread, True, False)).data
        return self.answer(thread, data, 201, Location=reverse("api-thread", args=[thread.pk]))


class ThreadView(ActorAPIView):
    @extend_schema(responses=ThreadSerializer, summary="One discussion")
    def get(self, request: Request, pk: int) -> Response:
        thread = selectors.thread_get(self.actor, pk)
        return self.answer(thread, ThreadSerializer(_row(thread, True, False)).data)


class ThreadCommentsView(ActorAPIView):
    @extend_schema(
        request=CommentWriteSerializer, responses={201: CommentSerializer}, summary="Answer in a discussion"
    )
    def post(self, request: Request, pk: int) -> Response:
        thread = selectors.thread_get(self.actor, pk)
        given = checked(CommentWriteSerializer, request)
        comment = services.thread_comment(actor=self.actor, thread=thread, text=given["text"])
        return Response(CommentSerializer(comment).data, status=201)


class ThreadStateView(ActorAPIView):
    """Base of the two transitions of a thread."""

    change: Callable[..., Thread]

    @extend_schema(request=None, responses=ThreadSerializer)
    def post(self, request: Request, pk: int) -> Response:
        thread = type(self).change(actor=self.actor, thread=selectors.thread_get(self.actor, pk))
        return self.answer(thread, ThreadSerializer(_row(thread, True, False)).data)


class ThreadResolveView(ThreadStateView):
    change = services.thread_resolve


class ThreadReopenView(ThreadStateView):
    change = services.thread_reopen


class ReviewRequestsView(ActorAPIView):
    @extend_schema(responses=ReviewRequestSerializer(many=True), summary="Who was asked for the review")
    def get(self, request: Request, pk: int) -> Response:
        rows = selectors.revision_get(self.actor, pk).review_requests.select_related("person", "requested_by")
        return Response(ReviewRequestSerializer(rows, many=True).data)

    @extend_schema(
        request=ReviewRequestWriteSerializer,
        responses={201: ReviewRequestSerializer},
        summary="Ask a person for the review",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        given = checked(ReviewRequestWriteSerializer, request)
        asked = services.review_request(
            actor=self.actor,
            revision=revision,
            person=selectors.person_to_ask(self.actor, given["person"]),
            note=given["note"],
        )
        return self.answer(asked, ReviewRequestSerializer(asked).data, status=201)


class ReviewRequestWithdrawView(ActorAPIView):
    @extend_schema(request=None, responses=ReviewRequestSerializer, summary="Take a request back")
    def post(self, request: Request, pk: int) -> Response:
        asked: ReviewRequest = services.review_request_withdraw(
            actor=self.actor, request=selectors.review_request_get(self.actor, pk)
        )
        return self.answer(asked, ReviewRequestSerializer(asked).data)


def _row(thread: Thread, present: bool, changed: bool) -> dict[str, Any]:
    return {"thread": thread, "present": present, "changed": changed}
