"""Cursor pages: `{"results": [...], "next": url, "previous": url}`."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    page_size_query_param = "page_size"
    max_page_size = 500
    ordering = "-id"
