"""What the caller must do: one error class an action (docs/architecture.md, "Errors").

What became of a command is no error: `firmware_bridge.link` has its outcomes.
Each message is a sentence for people: what happened, what it means, what to do next.
"""

from __future__ import annotations


class BridgeError(Exception):
    """Base of every error that leaves the bridge; nothing else may escape a transport."""


class LinkLost(BridgeError):
    """The handle is dead, or a write stopped half way: close, find the device again, identify again."""


class Busy(BridgeError):
    """Another program holds the port: back off and name the holder."""


class Denied(BridgeError):
    """The port exists but may not be opened: a technician must mend the rights."""


class Absent(BridgeError):
    """There is no such port now: wait for it."""


class Stalled(BridgeError):
    """A USB endpoint is halted: clear the halt once, then treat it as lost."""


class WrongDevice(BridgeError):
    """Identity, firmware or settings are not the expected ones: stop, call the supervisor."""


class Unsupported(BridgeError):
    """The port or the device cannot do this; degrade and say so once."""


class BadUri(BridgeError, ValueError):
    """The transport URI cannot be understood: a configuration error (exit code 2)."""
