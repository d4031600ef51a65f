"""What the site's own routes ask for: signing in, health, the schema of the API."""

from pocs.common.access import Table
from pocs.people.access import ANYONE, PERSON

TABLE: Table = {
    "healthz": {"GET": ANYONE},
    "phasegate.health.healthz": {"GET": ANYONE},  # a second path without a name
    "readyz": {"GET": ANYONE},
    "set_language": {"POST": ANYONE},
    "api-schema": {"GET": ANYONE},
    "api-docs": {"GET": ANYONE},
    "signin:login": {"GET": ANYONE, "POST": ANYONE, "PUT": ANYONE},
    "signin:logout": {"POST": ANYONE},
    "signin:preferences": {"GET": PERSON, "POST": PERSON, "PUT": PERSON},
}
