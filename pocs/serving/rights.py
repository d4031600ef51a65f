"""What the pages of live inference ask for; its API answers tokens alone (`pocs.serving.access`)."""

from pocs.common.access import Table
from pocs.people.access import reads

TABLE: Table = {
    "serving:engine": {"GET": reads()},
    "serving:engine_state": {"GET": reads()},
}
