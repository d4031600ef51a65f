"""The first page after sign-in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from pocs.common.ui.mixins import actor_of, page
from pocs.reviews.inbox import inbox_of


@page
def inbox(request: HttpRequest) -> HttpResponse:
    """What waits for the signed-in person."""
    return render(request, "inbox/inbox.html", {"inbox": inbox_of(actor_of(request))})
