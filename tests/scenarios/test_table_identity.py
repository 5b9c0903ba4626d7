"""Who is there, as the table sees it: the list of approved devices decides before a card moves."""

import pytest

from controller.table.inputs import Role
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.identity import Identity
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
HASH = "ab" * 32
SHUFFLER = {"vendor": "Cutcard", "product": "SHUFFLER", "serial": "SF1", "firmware": "1", "hash": HASH}
STATUS = {"state": "empty", "cycle": 0, "token": None, "inside": 0}


def table(**listed):
    allowed = {"shuffler": (Identity(**{**SHUFFLER, **listed}),)}
    return Table(table_rules(allowed=allowed))


def answers(t, **told):
    t.event(ev.LinkUp, "shuffler", boot=1, identity={**SHUFFLER, **told}, status=STATUS)


def verdict(t):
    return snapshot(t.rules, t.state)["devices"]["shuffler"]["verdict"]


@pytest.mark.rule("R-72")
def test_a_listed_device_is_attested_and_not_trusted():
    t = table()
    answers(t)
    assert (t.codes, verdict(t)) == ([], "ATTESTED_UNTRUSTED")
    assert snapshot(t.rules, t.state)["devices"]["shuffler"]["hash"] == HASH


@pytest.mark.rule("R-72")
def test_without_a_list_nobody_compared():
    t = Table()
    answers(t)
    assert (t.codes, verdict(t)) == ([], "UNCHECKED")


@pytest.mark.rule("R-64", "R-72", "R-77")
@pytest.mark.parametrize(
    ("told", "word", "cause"),
    [
        ({"serial": "SF2"}, "UNLISTED", "SF2 with firmware 1 is not on the list"),
        ({"firmware": "2"}, "CHANGED", "firmware is 2, the list says 1"),
        ({"hash": "cd" * 32}, "CHANGED", f"hash is {'cd' * 32}, the list says {HASH}"),
        ({"hash": None}, "CHANGED", "hash is not told"),
        ({"product": "SHOE"}, "CHANGED", "product is SHOE"),
    ],
)
def test_i34_a_device_that_is_not_the_approved_one_moves_no_card(told, word, cause):
    t = table()
    answers(t, **told)
    assert (t.codes, verdict(t)) == (["wrong_device"], word)
    (fault,) = t.state.faults
    assert cause in fault.cause
    assert t.refused("open").code == "fault_latched"
    assert t.effects == []
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"
    answers(t)
    t.tap("clear", SUPERVISOR, fault=fault.id)
    assert (t.codes, verdict(t)) == ([], "ATTESTED_UNTRUSTED")


@pytest.mark.rule("R-64")
def test_another_image_than_the_one_this_table_was_opened_with_is_latched_without_a_list_too():
    t = Table()
    answers(t)
    answers(t, hash="cd" * 32)
    assert t.codes == ["wrong_device"]
    assert HASH in t.state.faults[0].cause


@pytest.mark.rule("R-64")
def test_a_known_device_with_new_firmware_that_is_on_the_list_goes_on():
    t = Table()
    answers(t)
    t = Table(table().rules, t.state)
    answers(t, firmware="2")
    assert t.codes == ["wrong_device"]
    t = Table(table(firmware="2", hash="cd" * 32).rules, t.state)
    answers(t, firmware="2", hash="cd" * 32)
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    assert (t.codes, verdict(t)) == ([], "ATTESTED_UNTRUSTED")
    assert t.state.device("shuffler").firmware == "2"


def test_another_listed_device_is_not_the_one_of_this_journal():
    t = Table()
    answers(t)
    t = Table(table(serial="SF2").rules, t.state)
    answers(t, serial="SF2")
    assert t.codes == ["wrong_device"]
    assert "expected SF1" in t.state.faults[0].cause


def test_a_journal_from_before_hashes_goes_on():
    t = Table()
    answers(t, hash=None)
    answers(t)
    assert (t.codes, t.state.device("shuffler").hash) == ([], HASH)
