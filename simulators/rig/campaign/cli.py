"""`cutcard campaign`."""

from __future__ import annotations

from controller.cli.exits import CommandError


def campaign() -> None:
    """Play shoes under seeded faults and judge the table by where the cards really are."""
    raise CommandError("campaign is not built yet")
