"""The names of a managed device's commands, as `cutcard send` says them; those it lacks are ours."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[tuple[int, int, int], str] = {
    (0, 0, 0): "echo",
    (0, 0, 2): "echo",
    (0, 5, 2): "reset",
    (0, 6, 0): "parameters",
    (1, 0, 0): "images",
    (1, 0, 2): "confirm",
    (1, 1, 2): "upload",
    (64, 0, 0): "identity",
    (64, 1, 0): "settings",
    (64, 1, 2): "write-settings",
    (65, 0, 0): "events",
    (66, 0, 0): "status",
    (66, 1, 2): "start",
    (66, 2, 2): "abort",
    (66, 3, 2): "release",
    (66, 4, 0): "report",
    (67, 0, 0): "status",
    (67, 1, 2): "lock",
    (67, 2, 2): "unlock",
    (67, 3, 2): "dispense",
    (68, 0, 0): "peek",
}
"""By group, command and operation (0 read, 2 write)."""
EVERYWHERE = ((65, 0, 0), (1, 0, 0), (1, 0, 2), (1, 1, 2))
"""What is served beside the table of commands."""
