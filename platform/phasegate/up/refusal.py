"""Why `up` does not start, as one sentence for the person who called it."""


class CannotStart(Exception):
    """One sentence for the person who started; `status` becomes the exit status."""

    def __init__(self, sentence: str, status: int = 1) -> None:
        super().__init__(sentence)
        self.status = status
