"""Exceptions of the package. Every failure of a call is one of these, or a `ValueError` for an impossible argument."""


class OrbitKVError(Exception):
    """A call failed.

    Attributes:
        status: How it failed, a name of the protocol such as `"POOL_FULL"` or `"LIMIT"`.
    """

    def __init__(self, message: str, status: str = "INTERNAL") -> None:
        """Creates one with the message of whoever refused and the name of the status."""
        super().__init__(message)
        self.status = status


class OrbitKVInternal(OrbitKVError):
    """A fault inside the Manager or the client; the Manager's log has the cause."""


class InvalidRequestError(OrbitKVError, ValueError):
    """An argument breaks a rule; the message names the value and the rule."""


class LimitError(OrbitKVError):
    """A documented limit is exceeded; the message names it."""


class ManagerUnavailableError(OrbitKVError):
    """No Manager listens, or it went away. The client connects again by itself."""


class OrbitKVTimeoutError(OrbitKVError, TimeoutError):
    """A call did not end within its bound; says what it waited for, and proves nothing about pages."""


class LeaseEndedError(OrbitKVError):
    """The lease was used, released or cancelled, became too old, or was of an earlier Manager."""


class SaveNotSubmittedError(OrbitKVError):
    """A save was refused before anything was launched: the pages are free. Says nothing about older saves."""


class BindingChangedError(OrbitKVError):
    """A registered tensor no longer has the memory, shape or strides that it was registered with."""


class JvmError(OrbitKVError):
    """No usable Java virtual machine in this process; the message says what to install or set."""
