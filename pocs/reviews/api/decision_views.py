"""Waivers, decision and conditions over REST."""

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.common.errors import Conflict, NotFound
from pocs.evidence.selectors import revision_get
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.api.package_views import REFUSALS, checked
from pocs.reviews.api.serializers import (
    CloseWriteSerializer,
    ConditionSerializer,
    DecisionSerializer,
    DecisionWriteSerializer,
    NoteWriteSerializer,
    ReasonWriteSerializer,
    WaiverSerializer,
    WaiverWriteSerializer,
)
from pocs.reviews.models import Package


class WaiversView(ActorGenericView):
    serializer_class = WaiverSerializer

    @extend_schema(responses=WaiverSerializer(many=True), summary="Waivers of a project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.waivers_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=WaiverWriteSerializer,
        responses={201: WaiverSerializer} | REFUSALS,
        summary="Ask for a waiver; never without an expiry",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "waiver.request")
        waiver = services.waiver_request(
            actor=self.actor, project=project, **checked(WaiverWriteSerializer, request)
        )
        location = reverse("api-waiver", args=[waiver.pk])
        return self.answer(waiver, WaiverSerializer(waiver).data, status=201, Location=location)


class WaiverView(ActorAPIView):
    @extend_schema(responses=WaiverSerializer, summary="One waiver")
    def get(self, request: Request, pk: int) -> Response:
        waiver = selectors.waiver_get(self.actor, pk)
        return self.answer(waiver, WaiverSerializer(waiver).data)


class WaiverGrantView(ActorAPIView):
    @extend_schema(
        request=None, responses={200: WaiverSerializer} | REFUSALS, summary="Grant a waiver another asked for"
    )
    def post(self, request: Request, pk: int) -> Response:
        waiver = services.waiver_grant(actor=self.actor, waiver=selectors.waiver_get(self.actor, pk))
        return self.answer(waiver, WaiverSerializer(waiver).data)


class WaiverRefuseView(ActorAPIView):
    @extend_schema(
        request=NoteWriteSerializer,
        responses={200: WaiverSerializer} | REFUSALS,
        summary="Refuse a waiver, saying why",
    )
    def post(self, request: Request, pk: int) -> Response:
        waiver = selectors.waiver_get(self.actor, pk)
        row = services.waiver_refuse(actor=self.actor, waiver=waiver, **checked(NoteWriteSerializer, request))
        return self.answer(row, WaiverSerializer(row).data)


class WaiverRevokeView(ActorAPIView):
    @extend_schema(
        request=NoteWriteSerializer,
        responses={200: WaiverSerializer} | REFUSALS,
        summary="End a granted waiver, saying why",
    )
    def post(self, request: Request, pk: int) -> Response:
        waiver = selectors.waiver_get(self.actor, pk)
        row = services.waiver_revoke(actor=self.actor, waiver=waiver, **checked(NoteWriteSerializer, request))
        return self.answer(row, WaiverSerializer(row).data)


class DecisionsView(ActorGenericView):
    serializer_class = DecisionSerializer

    @extend_schema(
        responses=DecisionSerializer(many=True), summary="All decisions of a project, newest first"
    )
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.decisions_of(self.actor, project_get(self.actor, pk)))


class DecisionView(ActorAPIView):
    @extend_schema(
        responses={200: DecisionSerializer} | REFUSALS, summary="The decision that is proposed or confirmed"
    )
    def get(self, request: Request, pk: int) -> Response:
        decision = selectors.current_decision(project_get(self.actor, pk))
        if decision is None:
            raise NotFound(_("Nothing is decided yet."))
        return self.answer(decision, DecisionSerializer(decision).data)

    @extend_schema(
        request=DecisionWriteSerializer,
        responses={201: DecisionSerializer} | REFUSALS,
        summary="Propose a decision on a package",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "decision.propose")
        given = checked(DecisionWriteSerializer, request)
        conditions = [
            services.ConditionInput(
                text=item["text"],
                owner=selectors.person_of(project, item["owner"]),
                due_on=item["due_on"],
            )
            for item in given.pop("conditions")
        ]
        package = self._package(project, given.pop("package", None))
        decision = services.decision_propose(
            actor=self.actor, package=package, conditions=conditions, **given
        )
        return self.answer(decision, DecisionSerializer(decision).data, status=201)

    def _package(self, project: Project, pk: int | None) -> Package:
        if pk is not None:
            package = selectors.package_get(self.actor, pk)
            if package.project_id != project.pk:
                raise NotFound(_("There is no such package."))
            return package
        latest = selectors.latest_package(project)
        if latest is None:
            raise Conflict(_("No package has been frozen yet; there is nothing to decide on."))
        return latest


class DecisionConfirmView(ActorAPIView):
    @extend_schema(
        request=None,
        responses={200: DecisionSerializer} | REFUSALS,
        summary="Confirm a proposed decision by one's name",
    )
    def post(self, request: Request, pk: int) -> Response:
        decision = selectors.decision_get(self.actor, pk)
        row = services.decision_confirm(actor=self.actor, decision=decision)
        return self.answer(row, DecisionSerializer(row).data)


class DecisionRevokeView(ActorAPIView):
    @extend_schema(
        request=ReasonWriteSerializer,
        responses={200: DecisionSerializer} | REFUSALS,
        summary="Take a decision back, saying why",
    )
    def post(self, request: Request, pk: int) -> Response:
        decision = selectors.decision_get(self.actor, pk)
        row = services.decision_revoke(
            actor=self.actor, decision=decision, **checked(ReasonWriteSerializer, request)
        )
        return self.answer(row, DecisionSerializer(row).data)


class ConditionCloseView(ActorAPIView):
    @extend_schema(
        request=CloseWriteSerializer,
        responses={200: ConditionSerializer} | REFUSALS,
        summary="Close a condition with the evidence for it",
    )
    def post(self, request: Request, pk: int) -> Response:
        condition = selectors.condition_get(self.actor, pk)
        given = checked(CloseWriteSerializer, request)
        number = given.pop("revision", None)
        revision = None if number is None else revision_get(self.actor, number)
        row = services.condition_close(actor=self.actor, condition=condition, revision=revision, **given)
        return self.answer(row, ConditionSerializer(row).data)
