"""Routes of WebSockets."""

from django.urls import re_path

from phasegate.live.consumers import StreamConsumer, UnknownConsumer

websocket_urlpatterns = [
    re_path(r"^ws/streams/(?P<stream>[a-z_]{1,30}:[0-9A-Za-z_-]{1,40})/$", StreamConsumer.as_asgi()),
    re_path(r"", UnknownConsumer.as_asgi()),
]
