"""Refusals of the live API, in the form that clients of the OpenAI API read."""

from typing import Any


class ApiError(Exception):
    """One refusal: HTTP status, message, and the `type`, `code` and `param` by which programs tell it apart.

    Messages are in English whatever the caller's language is: they are read by programs and their logs.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.type, self.code, self.param = type, code, param
        self.retry_after_s = retry_after_s

    def body(self) -> dict[str, Any]:
        """`{"error": {"message", "type", "param", "code"}}`."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}

    def as_wire(self) -> dict[str, Any]:
        """As it travels from the engine worker to the web process."""
        return {"status": self.status, "retry_after_s": self.retry_after_s, **self.body()["error"]}

    @classmethod
    def from_wire(cls, fields: dict[str, Any]) -> "ApiError":
        return cls(**fields)


def unavailable(message: str, *, code: str = "engine_unavailable", retry_after_s: int = 5) -> ApiError:
    """503: nobody serves now; the same request may be served later."""
    return ApiError(503, message, type="server_error", code=code, retry_after_s=retry_after_s)
