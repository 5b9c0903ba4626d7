"""Exit codes of the contract in one place, and the sentence that goes with each error."""

from __future__ import annotations

FINE = 0
FOUND = 1
USAGE = 2
DEVICE = 3
REFUSED = 4


class CommandError(Exception):
    """A command ends here: one sentence on stderr and this exit code, never a traceback."""

    code = USAGE


class NoDaemon(CommandError):
    """Nobody answers on the control socket, or the daemon went away while we asked."""

    code = DEVICE


class RefusedByTable(CommandError):
    """A rule or the caller's rights say no."""

    code = REFUSED


CODES = {
    "firmware_bridge.errors.BadUri": USAGE,
    "firmware_bridge.capture.pcapng.CaptureError": USAGE,
    "firmware_bridge.errors.BridgeError": DEVICE,
    "firmware_bridge.firmware.image.BadImage": USAGE,
    "devices.registry.DriverError": USAGE,
    "controller.config.ConfigInvalid": USAGE,
    "controller.control_requests.SocketUnusable": USAGE,
    "controller.service.JournalDisagrees": USAGE,
    "controller.record.JournalBusy": DEVICE,
    "controller.record.JournalCorrupt": FOUND,
    "controller.record.JournalFailed": DEVICE,
    "controller.record.JournalError": USAGE,
    "controller.seal.SealError": USAGE,
    "builtins.OSError": USAGE,
}
"""By full name, so that no module is loaded for this; an error goes by its nearest base."""


def code_of(error: BaseException) -> int | None:
    """The exit code of an error that users cause or meet; None for a fault of ours."""
    if isinstance(error, CommandError):
        return error.code
    names = (f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__)
    return next((CODES[name] for name in names if name in CODES), None)


def sentence(error: BaseException) -> str:
    """What to print: our own errors are sentences already, the system's get their file."""
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename or repr('')}: "
        return f"{where}{error.strerror}"
    return str(error) or type(error).__name__
