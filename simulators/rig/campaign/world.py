"""A table of the campaign: the whole stack in one thread, with whatever is planned to go wrong."""

from __future__ import annotations

from pathlib import Path

from simulators.rig.campaign.result import Failure, Outcome, Plan
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Stuck


class Table:
    """One table of a plan; its files lie in `directory`, which is the caller's."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory

    def play(self) -> Outcome:
        """Play to the end, or as far as it goes."""
        plan, outcome = self.plan, Outcome()
        world = Stepped(plan.rules, plan.seed, plan.shoes, shoe=plan.shoe)
        try:
            world.run()
        except Stuck as stuck:
            outcome.failures.append(Failure(plan.first, str(stuck)))
        view, referee = world.view, world.felt.referee
        outcome.shoes = len(referee.shoes)
        outcome.played = len(referee.shoes) - bool(outcome.failures)
        outcome.rounds, outcome.cards, outcome.events = view.rounds, referee.cards, world.journal.last_seq
        outcome.failures += [Failure(plan.first, what) for what in referee.violations]
        outcome.counters.invariant_violations = len(referee.violations)
        outcome.simulated_s = world.clock.now()
        world.close()
        return outcome
