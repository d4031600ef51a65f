"""The Celery application: queues `engine` (runs) and `default` (everything else)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "phasegate.settings.embedded")

app = Celery("phasegate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# `current_app` is per thread otherwise, and a request thread would publish to a broker of nobody
app.set_default()
