"""What can be read of evidence, scoped by the reader's organisation and role."""

from django.db.models import Exists, Model, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, NotFound
from pocs.common.models import AuditEntry
from pocs.common.reading import remembered
from pocs.evidence.choices import CURRENT_STATES, EvidenceType, RequestState, RevisionState
from pocs.evidence.models import Attachment, Contribution, Evidence, EvidenceRevision, ReviewRequest, Thread
from pocs.evidence.review import review_rows  # noqa: F401 other apps read it here
from pocs.people import policies
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES
from pocs.people.selectors import people_of
from pocs.projects.models import Project
from pocs.runs.models import Run

#: what no gate and no review method asks of a run
UNASKED = ("configuration", "diagnosis", "rescored")


def may_read(actor: Actor, project: Project) -> bool:
    """People who see the project, and tokens that may read it or write its evidence."""
    return policies.allowed(actor, "project.view", project) or policies.allowed(
        actor, "evidence.edit", project
    )


def _require_read(actor: Actor, project: Project, unseen: str) -> None:
    """NotFound, in the words of `unseen`, for whoever may not read the project's evidence."""
    if not may_read(actor, project):
        policies.require(actor, "project.view", project, unseen=unseen)


def project_for_evidence(actor: Actor, pk: int) -> Project:
    """The project, for everyone who may read its evidence; NotFound for others."""
    project = Project.objects.filter(pk=pk, organisation_id=actor.organisation_id).first()
    if project is None:
        raise NotFound(_("There is no such project."))
    _require_read(actor, project, _("There is no such project."))
    return project


def runs_by_id(project: Project, ids: list[int]) -> list[Run]:
    """The project's runs with these ids; InvalidInput that points at the first that there is not."""
    found = Run.objects.filter(project=project).in_bulk(ids)
    detail = _("There is no such run in this project.")
    errors = [FieldError(f"/runs/{i}", "not_found", detail) for i, pk in enumerate(ids) if pk not in found]
    if errors:
        raise InvalidInput(detail, errors)
    return [found[pk] for pk in ids]


def evidence_by_id(project: Project, ids: list[int]) -> list[Evidence]:
    """The project's evidence with these ids; InvalidInput that points at each that there is not."""
    found = Evidence.objects.filter(project=project).in_bulk(ids)
    detail = _("There is no such evidence in this project.")
    errors = [
        FieldError(f"/evidence/{i}", "not_found", detail) for i, pk in enumerate(ids) if pk not in found
    ]
    if errors:
        raise InvalidInput(detail, errors)
    return [found[pk] for pk in ids]


def evidence_of(actor: Actor, project: Project) -> QuerySet[Evidence]:
    """The project's evidence by type, each with `latest_revisions`: the newest and the standing one."""
    _require_read(actor, project, _("There is no such project."))
    of_same = EvidenceRevision.objects.filter(evidence=OuterRef("evidence")).order_by("-number").values("pk")
    newest = Q(pk=Subquery(of_same[:1]))
    current = Q(pk=Subquery(of_same.filter(state__in=CURRENT_STATES)[:1]))
    revisions = EvidenceRevision.objects.filter(newest | current).defer("body")
    revisions = revisions.select_related("created_by", "reviewed_by", "token")
    return (
        Evidence.objects.filter(project=project)
        .prefetch_related(Prefetch("revisions", revisions.order_by("-number"), to_attr="latest_revisions"))
        .order_by("type", "id")
    )


def evidence_get(actor: Actor, pk: int) -> Evidence:
    """One piece of evidence; NotFound for a foreign or an absent one."""
    evidence = (
        Evidence.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related("project__organisation")
        .first()
    )
    if evidence is None:
        raise NotFound(_("There is no such evidence."))
    _require_read(actor, evidence.project, _("There is no such evidence."))
    return evidence


def revisions_of(evidence: Evidence) -> QuerySet[EvidenceRevision]:
    """All revisions of evidence that was read through `evidence_get`, newest first."""
    return (
        evidence.revisions.select_related(
            "evidence__project", "created_by", "submitted_by", "reviewed_by", "token"
        )
        .prefetch_related("runs", "attachments__uploaded_by")
        .order_by("-number")
    )


def revision_lines(evidence: Evidence) -> QuerySet[EvidenceRevision]:
    """All revisions, newest first, without their content: for lists and choices."""
    return evidence.revisions.select_related("created_by").defer("body").order_by("-number")


def revision_by_number(evidence: Evidence, number: int) -> EvidenceRevision:
    """One revision of evidence that was read through a selector; NotFound when there is none."""
    revision = revision_lines(evidence).filter(number=number).first()
    if revision is None:
        raise NotFound(_("There is no such revision."))
    return revision


def revision_get(actor: Actor, pk: int, *, evidence_pk: int | None = None) -> EvidenceRevision:
    """One revision, on a nested route of that evidence; NotFound for a foreign or an absent one."""
    rows = EvidenceRevision.objects.filter(pk=pk, evidence__project__organisation_id=actor.organisation_id)
    if evidence_pk is not None:
        rows = rows.filter(evidence_id=evidence_pk)
    revision = (
        rows.select_related("evidence__project", "created_by", "submitted_by", "reviewed_by", "token")
        .prefetch_related("runs", "attachments__uploaded_by")
        .first()
    )
    if revision is None:
        raise NotFound(_("There is no such revision."))
    _require_read(actor, revision.evidence.project, _("There is no such revision."))
    return revision


def attachment_get(actor: Actor, pk: int, *, revision_pk: int | None = None) -> Attachment:
    """One file, on a nested route of that revision; NotFound for a foreign or an absent one."""
    rows = Attachment.objects.filter(
        pk=pk, revision__evidence__project__organisation_id=actor.organisation_id
    )
    if revision_pk is not None:
        rows = rows.filter(revision_id=revision_pk)
    attachment = rows.select_related("revision__evidence__project", "uploaded_by").first()
    if attachment is None:
        raise NotFound(_("There is no such file."))
    _require_read(actor, attachment.revision.evidence.project, _("There is no such file."))
    return attachment


def same_files(revision: EvidenceRevision) -> dict[str, list[Attachment]]:
    """For each of the revision's files, by digest, the same content elsewhere in the project."""
    digests = [item.sha256 for item in revision.attachments.all()]
    project = revision.evidence.project_id
    rows = Attachment.objects.filter(sha256__in=digests, revision__evidence__project=project)
    rows = rows.exclude(revision__evidence=revision.evidence_id).select_related("revision__evidence")
    found: dict[str, dict[int, Attachment]] = {}
    for item in rows.order_by("-revision__number"):
        found.setdefault(item.sha256, {}).setdefault(item.revision.evidence_id, item)
    return {sha256: list(items.values()) for sha256, items in found.items()}


def thread_get(actor: Actor, pk: int) -> Thread:
    """One thread; NotFound for a foreign or an absent one."""
    rows = Thread.objects.filter(pk=pk, evidence__project__organisation_id=actor.organisation_id)
    thread = rows.select_related("evidence__project", "revision__evidence", "opened_by").first()
    if thread is None:
        raise NotFound(_("There is no such discussion."))
    _require_read(actor, thread.evidence.project, _("There is no such discussion."))
    return thread


def review_request_get(actor: Actor, pk: int) -> ReviewRequest:
    """One request for a review; NotFound for a foreign or an absent one."""
    rows = ReviewRequest.objects.filter(
        pk=pk, revision__evidence__project__organisation_id=actor.organisation_id
    )
    request = rows.select_related("revision__evidence__project", "person", "requested_by").first()
    if request is None:
        raise NotFound(_("There is no such request."))
    _require_read(actor, request.revision.evidence.project, _("There is no such request."))
    return request


def possible_reviewers(evidence: Evidence) -> QuerySet[User]:
    """Active people with a reviewing role who contributed to no revision of the evidence."""
    holders = evidence.project.members.filter(role__in=CAPABILITIES["evidence.review"]).values("user_id")
    authors = Contribution.objects.filter(revision__evidence=evidence).values("user_id")
    people = User.objects.filter(pk__in=holders, is_active=True).exclude(pk__in=authors)
    return people.order_by("username")


def person_to_ask(actor: Actor, pk: int) -> User:
    """The person whom a body names; InvalidInput (`/person`) when the organisation has no such person."""
    person = people_of(actor).filter(pk=pk).first()
    if person is None:
        detail = _("There is no such person in your organisation.")
        raise InvalidInput(detail, [FieldError("/person", "unknown", detail)])
    return person


@remembered
def current_revisions(project: Project) -> list[EvidenceRevision]:
    """The newest reviewed or frozen revision of each evidence, by type: what the project rests on."""
    rows = (
        EvidenceRevision.objects.filter(evidence__project=project, state__in=CURRENT_STATES)
        .select_related("evidence__project", "created_by", "reviewed_by")
        .prefetch_related(Prefetch("runs", Run.objects.defer(*UNASKED)), "attachments")
        .order_by("evidence__type", "evidence_id", "number")
    )
    return list({revision.evidence_id: revision for revision in rows}.values())


def unreviewed_revisions(project: Project, type: EvidenceType) -> list[EvidenceRevision]:
    """The newest revision of each evidence of this type that is not reviewed yet, most advanced first."""
    rows = EvidenceRevision.objects.filter(
        evidence__project=project,
        evidence__type=type,
        state__in=[RevisionState.DRAFT, RevisionState.SUBMITTED, RevisionState.RETURNED],
    ).select_related("evidence")
    rank = [RevisionState.SUBMITTED, RevisionState.DRAFT, RevisionState.RETURNED]
    return sorted(rows, key=lambda revision: (rank.index(RevisionState(revision.state)), -revision.pk))


def waiting_for_review(actor: Actor) -> list[EvidenceRevision]:
    """Submitted revisions that this person may review: the asked for first, then the longest waiting."""
    if not actor.is_person or actor.user_id is None:
        return []
    user = User.objects.filter(pk=actor.user_id, is_active=True).first()
    if user is None:
        return []
    roles = CAPABILITIES["evidence.review"]
    projects = user.project_roles.filter(
        role__in=roles, project__organisation_id=actor.organisation_id
    ).values("project_id")
    rows = EvidenceRevision.objects.filter(state=RevisionState.SUBMITTED, evidence__project__in=projects)
    rows = rows.exclude(evidence__revisions__contributions__user_id=user.pk)
    asked = ReviewRequest.objects.filter(revision=OuterRef("pk"), person=user.pk, state=RequestState.WAITING)
    rows = rows.annotate(asked=Exists(asked)).select_related("evidence__project", "submitted_by")
    return list(rows.order_by("-asked", "submitted_at", "pk"))


def contributors(project: Project) -> set[int]:
    """Ids of everyone who contributed to any revision in the project, the sponsors of tokens included."""
    rows = Contribution.objects.filter(revision__evidence__project=project)
    return set(rows.order_by().values_list("user_id", flat=True).distinct())


def history(evidence: Evidence) -> QuerySet[AuditEntry]:
    """What the audit chain holds about this evidence, newest first."""
    revisions = evidence.revisions.values_list("pk", flat=True)
    requests = ReviewRequest.objects.filter(revision__evidence=evidence).values_list("pk", flat=True)
    of: dict[type[Model], list[str]] = {
        EvidenceRevision: [str(pk) for pk in revisions],
        Thread: [str(pk) for pk in evidence.threads.values_list("pk", flat=True)],
        ReviewRequest: [str(pk) for pk in requests],
    }
    wanted = Q()
    for model, keys in of.items():
        wanted |= Q(object_type=model._meta.label_lower, object_id__in=keys)
    entries = AuditEntry.objects.filter(wanted, organisation_id=evidence.project.organisation_id)
    return entries.order_by("-sequence")
