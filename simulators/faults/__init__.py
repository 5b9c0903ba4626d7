"""What can go wrong with a simulated device, by name: the menu behind `cutcard sim --list-faults`.

A fault is a *trap* (it springs at its N-th occasion, or at each), a *setting* (there from then on) or an
*act* (it happens once). Back doors of models and wires; nothing of the protocol under test.
"""

from simulators.faults.fault import Fault, UnfitFault
from simulators.faults.menu import FAULTS, apply

__all__ = ["FAULTS", "Fault", "UnfitFault", "apply"]
