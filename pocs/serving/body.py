"""One JSON object, read field by field: each of its own type, and nothing left over unread."""

from typing import Any

from pocs.serving.errors import ApiError


def wrong(param: str | None, message: str, code: str) -> ApiError:
    """400 for one parameter."""
    return ApiError(400, message, param=param, code=code)


class Body:
    """The fields of one object; null counts as absent, and `end` refuses what nobody has asked for."""

    def __init__(self, fields: dict[str, Any], prefix: str = "") -> None:
        self._left = dict(fields)
        self._prefix = prefix

    def take(self, name: str) -> Any:
        return self._left.pop(name, None)

    def text(self, name: str, *, required: bool = False) -> str | None:
        value = self.take(name)
        if value is None:
            if required:
                raise self._wrong(
                    name, f"Missing required parameter: '{name}'.", "missing_required_parameter"
                )
            return None
        if not isinstance(value, str):
            raise self._type(name, "a string", value)
        return self.checked_text(name, value)

    def checked_text(self, name: str, value: str) -> str:
        """Text that can be sent on: half a surrogate pair is no text."""
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self._wrong(
                name, f"Invalid '{name}': it holds half a character.", "invalid_value"
            ) from None
        return value

    def flag(self, name: str) -> bool:
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._type(name, "a boolean", value)

    def whole(self, name: str, *, low: int, high: int = 2**63 - 1) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._type(name, "an integer", value)
        self._check_range("integer", name, value, low, high)
        return value

    def number(self, name: str, low: float, high: float, *, default: float) -> float:
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._type(name, "a number", value)
        self._check_range("decimal", name, value, low, high)
        return float(value)

    def refuse(self, name: str, neutral: tuple[Any, ...], why: str) -> None:
        """Refuse a field, unless its value asks for nothing."""
        value = self.take(name)
        if value is None or any(type(value) is type(calm) and value == calm for calm in neutral):
            return
        raise self._wrong(name, f"Unsupported parameter: '{name}'. {why}", "unsupported_parameter")

    def end(self) -> None:
        for name in self._left:
            shown = self._prefix + name[:80]
            raise self._wrong(name[:80], f"Unknown parameter: '{shown}'.", "unknown_parameter")

    def _check_range(self, kind: str, name: str, value: float, low: float, high: float) -> None:
        if value < low:
            expected, code = f">= {low:g}", f"{kind}_below_min_value"
        elif value > high:
            expected, code = f"<= {high:g}", f"{kind}_above_max_value"
        else:
            return
        text = f"Invalid '{name}': expected a value {expected}, but got {value!r:.40} instead."
        raise self._wrong(name, text, code)

    def _type(self, name: str, expected: str, value: Any) -> ApiError:
        names: dict[type, str] = {
            str: "a string",
            bool: "a boolean",
            int: "an integer",
            float: "a decimal number",
            list: "an array",
            dict: "an object",
        }
        got = names.get(type(value), "something else")
        text = f"Invalid type for '{self._prefix}{name}': expected {expected}, but got {got} instead."
        return self._wrong(name, text, "invalid_type")

    def _wrong(self, name: str, message: str, code: str) -> ApiError:
        return wrong(self._prefix + name, message, code)
