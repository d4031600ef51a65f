"""Errors with one sentence for the user; the command line maps them to exit codes, the site to forms."""


class InferenceError(Exception):
    """Base: the message is one sentence saying what is wrong and where."""


class InputError(InferenceError):
    """A wrong argument or request line (exit 2)."""


class TargetUnavailable(InferenceError):
    """The target could not be reached or its model could not be loaded (exit 3)."""


class RequestRejected(InferenceError):
    """A request that the target can never serve; others go on."""
