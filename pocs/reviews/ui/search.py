"""What reviews add to the search: packages."""

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.projects.models import Project
from pocs.projects.searching import Finder, Hit, having
from pocs.reviews.models import Package


def find_packages(projects: QuerySet[Project], words: list[str], limit: int) -> list[Hit]:
    """Packages by number (P2), digest and name of their project."""
    rows = Package.objects.filter(
        having(words, ("digest", "project__name"), number="P"), project__in=projects.order_by()
    )
    rows = rows.select_related("project").defer("manifest").order_by("-pk")[:limit]
    return [
        Hit(
            _("Package %(number)s") % {"number": row.number},
            reverse("reviews:package", args=[row.pk]),
            project=row.project.name,
            note=row.digest[:12],
            state=row.state,
            state_label=row.get_state_display(),
        )
        for row in rows
    ]


FINDER = Finder("packages", gettext_lazy("Packages"), 60, find_packages)
