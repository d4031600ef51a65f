"""`Idempotency-Key`: a repeated POST gets the first answer and changes nothing.

New key: the request is answered and the answer stored in the same transaction as the change.
Replay: the stored answer with `Idempotent-Replayed: true`. Same key, other body: 422. First request
still in flight: 409 with `Retry-After`. A refused request stores nothing, so it may be sent again.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import FieldError, IdempotencyMismatch, InFlight, InvalidInput
from pocs.common.models import IdempotencyKey

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
#: a first request that has not answered by then died with its process; its key may be taken over
ABANDONED_AFTER_S = 60
_KEPT_HEADERS = ("Location", "ETag")


def idempotent(request: Request, actor: Actor, produce: Callable[[], Response]) -> Response:
    """Answer with `produce()` once per actor, path and key; without the header, simply `produce()`."""
    key = request.headers.get(HEADER, "").strip()
    if not key:
        return produce()
    if len(key) > 200:
        text = _("An idempotency key has at most 200 characters.")
        raise InvalidInput(text, [FieldError("", "max_length", text)])
    body_digest = _body_digest(request.data)
    who = f"token:{actor.token_id}" if actor.kind == "token" else f"user:{actor.user_id}"
    row = _claim(who, request.path, key, body_digest)
    if row.body_digest != body_digest:
        raise IdempotencyMismatch(_("This idempotency key was used before with another body."))
    if row.status is not None:
        return _replay(row)
    try:
        with transaction.atomic():
            response = produce()
            if response.status_code < 400:
                row.status = response.status_code
                row.response = {
                    "body": json.loads(JSONRenderer().render(response.data) or "null"),
                    "headers": {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)},
                }
                row.save(update_fields=["status", "response"])
    finally:
        if row.status is None:
            IdempotencyKey.objects.filter(pk=row.pk, status=None).delete()
    return response


def _claim(who: str, path: str, key: str, body_digest: str) -> IdempotencyKey:
    """The row of this key: ours to fill (`status` None), or the answered one of an earlier request.

    Raises InFlight while another request with the same body holds it.
    """
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(actor=who, path=path, key=key, body_digest=body_digest)
    except IntegrityError:
        row = IdempotencyKey.objects.filter(actor=who, path=path, key=key).first()
    if row is None:
        # it was refused and released between our two queries
        raise InFlight(_("Another request with this key has just been refused. Try again."))
    if row.status is not None or row.body_digest != body_digest:
        return row
    now = timezone.now()
    taken = IdempotencyKey.objects.filter(
        pk=row.pk,
        status=None,
        created_at=row.created_at,
        created_at__lt=now - timedelta(seconds=ABANDONED_AFTER_S),
    ).update(created_at=now)
    if not taken:
        raise InFlight(_("The first request with this key is still being answered. Try again in a second."))
    return row


def _replay(row: IdempotencyKey) -> Response:
    stored: dict[str, Any] = row.response or {}
    headers = dict(stored.get("headers", {})) | {REPLAYED_HEADER: "true"}
    return Response(stored.get("body"), status=row.status, headers=headers)


def _body_digest(data: Any) -> str:
    """Digest of a parsed body: JSON as it is, a form with its files by their content."""
    if isinstance(data, QueryDict):
        return digest({name: [_plain(value) for value in values] for name, values in data.lists()})
    return digest(data)


def _plain(value: Any) -> Any:
    if not isinstance(value, UploadedFile):
        return value
    content = hashlib.sha256()
    for chunk in value.chunks():
        content.update(chunk)
    value.seek(0)
    return {"name": value.name, "sha256": content.hexdigest()}
