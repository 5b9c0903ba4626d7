"""What people do wrong at a table: all slips by name, in the style of the fault menu."""

from __future__ import annotations

from collections.abc import Mapping

from simulators.rig.campaign.slip import Slip
from simulators.rig.campaign.slips_dealt import DEALT
from simulators.rig.campaign.slips_loaded import LOADED
from simulators.rig.campaign.slips_told import TOLD

SLIPS: Mapping[str, Slip] = {**TOLD, **DEALT, **LOADED}
