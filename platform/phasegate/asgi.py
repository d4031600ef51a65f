"""The ASGI application: pages and API over HTTP, live streams over WebSocket."""

import gc
import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "phasegate.settings.embedded")
# loads the apps: nothing below may be imported before
http_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from phasegate.limits import BodyLimit  # noqa: E402
from phasegate.routing import websocket_urlpatterns  # noqa: E402
from pocs.serving.http import LiveApi  # noqa: E402

application = ProtocolTypeRouter(
    {
        # live answers stream for minutes: they pass by the middlewares, which would hold a thread each
        "http": LiveApi(
            url=settings.REDIS_URL,
            otherwise=BodyLimit(http_application, max_bytes=settings.PHASEGATE_BODY_MAX_BYTES),
        ),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

# A full collection walks whatever was ever imported, some 80 ms in the middle of somebody's page: what the
# application consists of, its routes included, is not looked at again.
get_resolver().reverse_dict  # noqa: B018 reading it loads them
gc.collect()
gc.freeze()
