"""Scenario versions over REST."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.common.errors import FieldError, InvalidInput
from pocs.projects import selectors, services
from pocs.projects.api.serializers import ScenarioSerializer
from pocs.projects.api.views import IDEMPOTENCY_KEY, REFUSED
from pocs.projects.models import Project, ScenarioVersion


class ScenariosView(ActorGenericView):
    serializer_class = ScenarioSerializer

    @extend_schema(responses=ScenarioSerializer(many=True), summary="Every version of every scenario")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.scenario_versions(selectors.project_get(self.actor, pk)))

    @extend_schema(
        request=ScenarioSerializer,
        responses={201: ScenarioSerializer, 400: ProblemSerializer},
        parameters=[IDEMPOTENCY_KEY],
        summary="Create a scenario, or the next version of a known one, in draft",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "scenario.edit")

        def produce() -> Response:
            serializer = ScenarioSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            version = self._store(project, serializer.validated_data)
            url = reverse("api-scenario-version", args=[pk, version.scenario.slug, version.number])
            return self.answer(version, ScenarioSerializer(version).data, 201, Location=url)

        return idempotent(request, self.actor, produce)

    def _store(self, project: Project, asked: dict[str, Any]) -> ScenarioVersion:
        named = asked["scenario"]
        known = project.scenarios.filter(slug=named["slug"]).select_related("project").first()
        if known is None:
            missing = [name for name in ("name", "kind") if name not in named]
            if missing:
                text = _("A new scenario needs a name and a kind.")
                raise InvalidInput(text, [FieldError(f"/{name}", "required", text) for name in missing])
            return services.scenario_create(actor=self.actor, project=project, spec=asked["spec"], **named)
        kept = {"name": known.name, "kind": known.kind}
        differing = [name for name in kept if named.get(name, kept[name]) != kept[name]]
        if differing:
            text = _("A new version keeps the name and kind of its scenario.")
            raise InvalidInput(text, [FieldError(f"/{name}", "fixed", text) for name in differing])
        return services.scenario_version_add(actor=self.actor, scenario=known, spec=asked["spec"])


class ScenarioVersionView(ActorAPIView):
    @extend_schema(responses=ScenarioSerializer, summary="One version of a scenario")
    def get(self, request: Request, pk: int, slug: str, number: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        version = selectors.scenario_version_get(self.actor, project, slug, number)
        return self.answer(version, ScenarioSerializer(version).data)


class ApproveView(ActorAPIView):
    @extend_schema(
        request=None, responses={200: ScenarioSerializer} | REFUSED, summary="Approve a version for runs"
    )
    def post(self, request: Request, pk: int, slug: str, number: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        version = selectors.scenario_version_get(self.actor, project, slug, number)
        approved = services.scenario_version_approve(actor=self.actor, version=version)
        return self.answer(approved, ScenarioSerializer(approved).data)


class RetireView(ActorAPIView):
    @extend_schema(
        request=None, responses={200: ScenarioSerializer} | REFUSED, summary="Take a version out of use"
    )
    def post(self, request: Request, pk: int, slug: str, number: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        version = selectors.scenario_version_get(self.actor, project, slug, number)
        retired = services.scenario_version_retire(actor=self.actor, version=version)
        return self.answer(retired, ScenarioSerializer(retired).data)
