"""What tests do wrong with a table and its devices: it comes out in that test, and breaks nothing."""

from __future__ import annotations

import math
import signal
import threading

import pytest

from controller.cli.exits import NoDaemon
from simulators.rig.live import DaemonGone

ONE_DECK = "two-batch-shoe-1"


class Timeout(BaseException):
    """What a plugin raises by a signal in the main thread when a test takes too long."""


def test_a_test_that_fails_in_an_act_fails_there_and_breaks_nothing(cutcard_bee_tek):
    def fails(_):
        pytest.fail("the card is another one")

    def skips(_):
        pytest.skip("not today")

    with pytest.raises(pytest.fail.Exception, match="the card is another one"):
        cutcard_bee_tek.act(fails)
    with pytest.raises(pytest.skip.Exception, match="not today"):
        cutcard_bee_tek.act(skips)
    assert cutcard_bee_tek.act(lambda machine: machine.drawn) == 0


def test_a_test_that_fails_while_the_dealer_plays_fails_there_and_breaks_nothing(cutcard_table):
    table = cutcard_table(ONE_DECK)
    with pytest.raises(pytest.fail.Exception, match="too late"):
        table.play(until=lambda: table.rounds and pytest.fail("too late"))
    table.play(until=lambda: table.rounds == 2)
    assert table.violations == []


def test_who_is_interrupted_while_the_dealer_plays_waits_for_nothing(cutcard_table):
    table, main = cutcard_table(ONE_DECK, shoes=8), threading.get_ident()

    def too_long(*_):
        raise Timeout

    before = signal.signal(signal.SIGUSR2, too_long)
    try:
        with pytest.raises(Timeout):
            table.play(until=lambda: table.rounds == 1 and signal.pthread_kill(main, signal.SIGUSR2))
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert table.act(lambda felt: len(felt.referee.shoes)) == 1
    table.play(until=lambda: table.rounds >= 3)


def test_without_a_daemon_nobody_answers_and_nobody_plays(cutcard_virtual_table, cutcard_table):
    for table in (cutcard_virtual_table(ONE_DECK), cutcard_table(ONE_DECK)):
        table.play(until=lambda table=table: table.rounds == 1)
        table.kill()
        facts = len(table.facts())
        with pytest.raises(NoDaemon):
            table.get("status")
        with pytest.raises(NoDaemon):
            table.tap("idle")
        with pytest.raises(DaemonGone):
            table.play()
        assert (len(table.facts()), table.rounds) == (facts, 1)
        table.start()
        table.play(until=lambda table=table: table.rounds == 2)
        assert table.violations == []


def test_time_passes_at_a_table_without_a_daemon(cutcard_virtual_table):
    table = cutcard_virtual_table(ONE_DECK)
    table.kill()
    before = table.stepped.clock.now()
    table.pass_time(30)
    assert table.stepped.clock.now() == before + 30
    table.start()
    with pytest.raises(RuntimeError, match="runs already"):
        table.start()


@pytest.mark.parametrize("shoes", [0, -1, True, 1.5])
def test_a_table_deals_a_whole_number_of_shoes(cutcard_table, cutcard_virtual_table, shoes):
    for make in (cutcard_table, cutcard_virtual_table):
        with pytest.raises(ValueError, match="shoes is how many are dealt, a whole number from 1, not"):
            make(ONE_DECK, shoes=shoes)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_what_is_no_time_does_not_pass(cutcard_virtual_table, seconds):
    with pytest.raises(ValueError, match="time passes by 0 to 86400 s, a day, not by"):
        cutcard_virtual_table(ONE_DECK).pass_time(seconds)


def test_a_kind_of_fact_that_is_none_is_told_and_one_that_did_not_come_is_empty(cutcard_virtual_table):
    table = cutcard_virtual_table(ONE_DECK)
    table.play(until=lambda: table.rounds == 1)
    assert table.facts("gap_possible") == []
    with pytest.raises(ValueError, match=r"kind 'card_drwn'; did you mean 'card_drawn'\?"):
        table.facts("card_drwn")
