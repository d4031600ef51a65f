"""Permissions of REST framework's views that are no matter of a role."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class PeopleOnly(BasePermission):
    """No CI token, whatever its scopes and whoever its sponsor."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return request.auth is None
