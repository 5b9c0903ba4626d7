"""Scenarios in YAML: what a file says, what is wrong with it in one line, and what a report tells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.table import evolve
from controller.table.inputs import Role
from simulators.faults.script import Step
from simulators.rig.fact_kinds import FACT_KINDS
from simulators.rig.scenario import PLAYED, Amount, Expected, ScenarioError, Tap, load
from simulators.rig.staging import play

WHOLE = """\
about: everything that can be said
table: two-batch-shoe-1
seed: 010
shoes: 2
helped: yes
faults:
  - {fault: misread, device: shoe, card: 17}
  - {fault: leave_inside, value: 3, nth: 2}
  - {fault: power_cut, time: 40.5}
taps:
  - {card: 5, tap: close, refused: unexpected}
  - {fact: round_settled, nth: 2, tap: hit box=3 hand=2, by: supervisor}
  - {time: 7, tap: idle}
expect:
  latched: [shoe_rebooted, wrong_count]
  alarms: []
  ends: shoe_rebooted
  rounds: 5
  cards: 10+
  restarts: 1
  facts: [booted, {kind: card_drawn, card: 8S}]
  never: [dead_card]
"""


@pytest.fixture
def write(tmp_path):
    def make(text: str, name: str = "one.cutcard.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_everything_that_can_be_said_is_read(write):
    found = load(write(WHOLE))
    assert (found.about, found.seed, found.shoes, found.helped) == (
        "everything that can be said",
        "010",
        2,
        True,
    )
    assert (found.rules.decks, found.rules.mode, found.shoe) == (1, "two-batch-shoe", "managed-shoe")
    assert found.faults == (
        Step("misread", device="shoe", card=17),
        Step("leave_inside", "3", "shuffler", nth=2),
        Step("power_cut", device="power", time=40.5),
    )
    assert found.taps == (
        Tap("close", {}, "card_drawn", 5, refused="unexpected"),
        Tap("hit", {"box": "3", "hand": "2"}, "round_settled", 2, by=Role.SUPERVISOR),
        Tap("idle", {}, time=7.0),
    )
    assert found.expect == Expected(
        ("shoe_rebooted", "wrong_count"),
        "shoe_rebooted",
        (),
        Amount(5, more=False),
        Amount(10, more=True),
        Amount(1, more=False),
        ({"kind": "booted"}, {"kind": "card_drawn", "card": "8S"}),
        ("dead_card",),
    )


def test_what_is_not_said_is_the_demos_table_played_to_its_end(write):
    found = load(write("shoes: 1", "a_quiet_day.cutcard.yaml"))
    assert (found.about, found.seed, found.helped, found.rules.decks) == ("a quiet day", "1", False, 6)
    assert (found.faults, found.taps, found.expect) == ((), (), Expected(ends=PLAYED))


def test_a_table_is_a_file_an_example_or_sections_over_the_demos(write):
    sections = "table: {boxes: 5, wagers: []}, cards: {decks_per_batch: 2}"
    reader = "devices: {reader: {driver: hole-card-reader}}"
    found = load(write(f"table: {{{sections}, {reader}}}")).rules
    assert (found.boxes, found.decks, found.reader, found.shoe) == (5, 2, "reader", "shoe")
    write((Path(__file__).parents[1] / "example_project" / "our_table.toml").read_text(), "our.toml")
    assert load(write("table: our.toml")).rules.boxes == 5
    assert load(write("table: casino-night-hand")).rules.night


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "here belongs KEY: VALUE, the keys are about, table,"),
        ("- a", 1, "here belongs KEY: VALUE"),
        ("shoes: 1\nshoes: 2", 1, "shoes stands there 2 times"),
        ("shoes: [1", 1, "it is no YAML"),
        ("about: &a x\nseed: *a", 1, "anchors"),
        ("seed: 1\nfault: []", 2, "there is no key 'fault'; did you mean 'faults'?"),
        ("seed: [1]", 1, "seed is one word or number"),
        ("shoes: 0", 1, "shoes is a whole number from 1 on, not '0'"),
        ("shoes: two", 1, "shoes is a whole number from 1 on, not 'two'"),
        ("helped: maybe", 1, "helped is yes, true, no or false, not 'maybe'"),
        (
            "table: two-batch-sho-1",
            1,
            "there is no example 'two-batch-sho-1'; did you mean 'two-batch-shoe-1'?",
        ),
        ("table: none.toml", 1, "none.toml cannot be read: No such file or directory"),
        ("table: [a]", 1, "a table is a .toml file, the name of an example, or sections"),
        ("table: {table: {boxs: 5}}", 1, "did you mean boxes?"),
        ("faults: {}", 1, "`faults` has no step"),
        ("faults:\n  - {fault: misred}", 2, "there is no fault 'misred'; did you mean 'misread'?"),
        (f"{'x' * 900}: 1", 1, f"there is no key '{'x' * 59}... (there are"),
        (f"expect: {{latched: [{'x' * 9000}]}}", 1, f"no fault is called '{'x' * 59}..."),
        ("faults:\n  - {fault: misread,\n     card: 0}", 2, "card counts from 1, not 0"),
        (
            "faults:\n- {fault: crash}\n- {fault: misread, tme: 3}",
            3,
            "there is no key 'tme'; did you mean 'time'?",
        ),
        ("faults:\n- {fault: silent, time: 3}", 2, "say whose fault it is, device: shoe or shuffler"),
        (
            "faults:\n- {fault: silent, device: sho}",
            2,
            "this table has no 'sho'; did you mean 'shoe'? (it has",
        ),
        ("faults:\n- {fault: leave_inside, device: shoe}", 2, "only a shuffler"),
        ("faults:\n- {fault: leave_inside, value: many}", 2, "'many' is no value for leave_inside"),
        ("faults:\n- {fault: crash, device: shoe}", 2, "crash befalls daemon, not shoe"),
        (
            "faults:\n- {fault: power_cut, value: long}",
            2,
            "value is a number of seconds from 0 to 86400, a day, not 'long'",
        ),
        ("faults:\n- {fault: crash, value: 3}", 2, "crash takes no value"),
        ("faults:\n- {fault: wrong_tap, device: shoe}", 2, "wrong_tap befalls dealer, not shoe"),
        ("faults:\n- {fault: wrong_tap, nth: 3}", 2, "a slip comes after a card, a command or a time, or at"),
        ("taps: close", 1, "taps is a list"),
        ("taps:\n- {card: 3}", 2, "it taps nothing; write tap: EVENT KEY=VALUE"),
        ("taps:\n- {tap: closed, card: 3}", 2, "there is no event 'closed'; did you mean 'close'?"),
        ("taps:\n- {tap: close}", 2, "a tap has one moment: card, fact (the nth of them) or time"),
        ("taps:\n- {tap: close, card: 3, time: 4}", 2, "a tap has one moment"),
        ("taps:\n- {tap: close, card: 3, nth: 4}", 2, "nth counts facts of one kind"),
        ("taps:\n- {tap: hit box 3, card: 3}", 2, "'box' is no argument; write KEY=VALUE"),
        (
            "taps:\n- {tap: close, time: -1}",
            2,
            "time is a number of seconds from 0 to 86400, a day, not '-1'",
        ),
        ("taps:\n- {tap: close, time: nan}", 2, "time is a number of seconds"),
        (
            "taps:\n- tap: close\n  card: 3\n  by: boss",
            4,
            "by is dealer, supervisor, technician or surveillance",
        ),
        ("expect:\n  latched: wrong_count", 2, "latched is a list"),
        (
            "expect:\n  latched:\n  - wrong_cont",
            3,
            "no fault is called 'wrong_cont'; did you mean 'wrong_count'?",
        ),
        ("expect: {rounds: many}", 1, "rounds is a number, or one with + for at least, not 'many'"),
        ("expect:\n  facts: [{card: 8S}]", 2, "a fact is its kind, or {kind: KIND, KEY: VALUE}"),
        ("expect:\n  never: [card_drwn]", 2, "kind 'card_drwn'; did you mean 'card_drawn'?"),
        ("expect:\n  facts:\n  - {kind: batch_voidet}", 3, "did you mean 'batch_voided'?"),
        ("taps:\n- {tap: close, fact: round_setled}", 2, "did you mean 'round_settled'?"),
        ("expect: {ends: playd}", 1, "no table ends by 'playd'; did you mean 'played'?"),
        ("shoes: 1000000", 1, "1000 shoes are the most, not 1000000"),
        ("taps:\n- {tap: close, time: 86401}", 2, "from 0 to 86400, a day, not '86401'"),
        ("expect: {round: 3}", 1, "there is no key 'round'; did you mean 'rounds'?"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(write, text, line, says):
    with pytest.raises(ScenarioError) as told:
        load(write(text))
    found = re.fullmatch(r"one\.cutcard\.yaml(?::([0-9]+))?: (.*)", str(told.value))
    assert found is not None, str(told.value)
    assert (found[1], says in found[2]) == (str(line), True), str(told.value)


def test_every_kind_of_fact_that_the_table_drafts_is_known():
    drafted = set()
    for file in Path(evolve.__file__).parents[1].rglob("*.py"):
        drafted |= set(re.findall(r'(?:\.add|Fact)\(\s*"([a-z_]+)"', file.read_text()))
    assert len(drafted) > 20
    assert drafted - FACT_KINDS == set()


WORDS = st.sampled_from(
    [
        "",
        "1",
        "17",
        "yes",
        "misread",
        "shoe",
        "close",
        "card_drawn",
        "two-batch-shoe-1",
        "-1",
        "1e9",
        "\u2028",
    ]
)
TOP = ("about", "table", "seed", "shoes", "helped", "faults", "taps", "expect")
INNER = "fault card nth tap fact cards devices latched facts kind decks_per_batch time by device rounds other"
TREES = st.recursive(
    WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER.split()), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@example(tree={"table": {"other": ["", {}]}})
@given(tree=st.dictionaries(st.sampled_from(TOP), TREES))
def test_any_tree_is_a_scenario_or_one_line(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("any") / "any.cutcard.yaml"
    path.write_text(yaml.safe_dump(tree, allow_unicode=True))
    told = "any.cutcard.yaml: fine"
    try:
        load(path)
    except ScenarioError as error:
        told = str(error)
    assert re.fullmatch(r"any\.cutcard\.yaml(:[0-9]+)?: .+", told)


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    for name, data in (("none.cutcard.yaml", None), ("bytes.cutcard.yaml", b"\xff\xfe")):
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(ScenarioError, match=rf"\A{name}: cannot be read: .*\Z"):
            load(tmp_path / name)


SMALL = "table: two-batch-shoe-1\n"


OTHERWISE = """\
table: two-batch-shoe-1
faults:
  - {fault: leave_inside, nth: 1}
  - {fault: misread, card: 17, device: shoe}
taps:
  - {time: 1, tap: idle, refused: role}
  - {time: 1, tap: hit box=1}
  - {fact: round_settled, tap: close}
  - {time: 80000, tap: close}
expect:
  latched: [cards_inside]
  alarms: [device_down]
  rounds: 2
  cards: 1+
  facts: [{kind: fault_latched, cod: wrong_count}, booted]
  never: [cycle_started]
"""
REPORT = """\
tap idle: expected refused: role, was refused: unexpected (idle is not expected now: the table is in phase \
opening)
tap hit box=1: expected to be accepted, was refused: unexpected (hit is not expected now: the table is in \
phase opening)
latched: expected [cards_inside], found [wrong_count]
ends: expected played, found wrong_count
alarms: expected [device_down], found []
rounds: expected 2, found 0
cards: expected 1+, found 0
facts: number 1, fault_latched cod=wrong_count, never came; none has the key 'cod'; did you mean 'code'?
never: cycle_started came
the fault {fault: misread, device: shoe, card: 17} never struck: its moment did not come
tap close: never tapped, round_settled number 1 did not come
tap close: never tapped, 80000 s did not come
"""


def test_all_that_came_otherwise_is_told(write):
    told = play(load(write(OTHERWISE)))
    end = told.index("")
    assert told[:end] == REPORT.splitlines()
    assert re.fullmatch(
        r"seed 1: rounds 0, cards 0, restarts 0, \d+ s at the table; what struck: leave_inside 1",
        told[end + 1],
    )
    assert re.fullmatch(r"its last facts, of \d+:", told[end + 2])
    assert len(told[end + 3 :]) == 5


def test_facts_in_another_order_are_told(write):
    found = play(load(write(SMALL + "expect: {facts: [burn, open, card_drawn]}\n")))
    assert found[0] == "facts: number 2, open, did not come after those before it"


def test_a_table_that_is_helped_goes_on(write):
    text = SMALL + "faults:\n  - {fault: leave_inside, nth: 1}\n"
    expected = "expect: {latched: [wrong_count], ends: wrong_count, cards: 0}\n"
    assert play(load(write(text + expected))) == []
    mended = "helped: yes\nexpect: {latched: [wrong_count, cards_inside], cards: 52}\n"
    assert play(load(write(text + mended))) == []


def test_a_slip_of_the_dealer_is_made_at_its_next_occasion(write):
    text = SMALL + "helped: yes\nfaults: [{fault: drawn_too_early, card: 20}, {fault: double_tap}]\n"
    assert play(load(write(text + "expect: {latched: [card_out_of_turn]}\n"))) == []


def test_the_same_seed_gives_the_same_report(write):
    text = SMALL + "faults: [{fault: crash, chance: 0.02}, {fault: leave_inside}]\nexpect: {cards: 1}\n"
    one, two = (play(load(write(text))) for _ in range(2))
    assert one == two
    assert one[0] == "latched: expected [], found [wrong_count]"
