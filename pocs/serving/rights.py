"""What the pages of live inference ask for; its API answers tokens alone (`pocs.serving.access`), and the
playground's answers those who may open it (`pocs.serving.visitors`).
"""

from pocs.common.access import Table
from pocs.people.access import behind, needs, reads
from pocs.projects.models import Project

PROJECT = behind(Project)

TABLE: Table = {
    "serving:engine": {"GET": reads()},
    "serving:engine_state": {"GET": reads()},
    "serving:playground": {
        "GET": needs("inference.use", PROJECT),
        "POST": needs("scenario.edit", PROJECT),
    },
}
