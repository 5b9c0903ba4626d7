"""Scripts of faults: what may stand in one, and that it strikes when it says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators import faults
from simulators.faults import script
from simulators.faults.script import Director, ScriptError, Step
from simulators.hosts.line import Line
from tests.support import exercises
from tests.support.exercises import READ, WRITE, Bench

TOKEN = bytes(16)


def refused(text: str) -> str:
    with pytest.raises(ScriptError) as told:
        script.read(text, faults.FAULTS)
    assert "\n" not in str(told.value)
    return str(told.value)


# Reading


def test_a_script_is_read_step_by_step():
    assert script.read(
        "# a comment\n"
        "faults:\n"
        "  - {fault: misread, card: 17}\n"
        "  - {fault: late_answer, value: 3.10, command: start, nth: 2}\n"
        "  - {fault: flip_bit, chance: 1e-2}\n"
        "  - fault: unplug\n"
        "    value: 1.5\n"
        "    time: 12.5\n"
        "  - {fault: junk_before, value: 0100, device: shoe}\n"
        "  - {fault: jam, value: no}\n"
        "  - {fault: drop, nth: 3}\n",
        faults.FAULTS,
    ) == (
        Step("misread", card=17),
        Step("late_answer", "3.10", command="start", nth=2),
        Step("flip_bit", chance=0.01),
        Step("unplug", "1.5", time=12.5),
        Step("junk_before", "0100", "shoe"),
        Step("jam", "no"),
        Step("drop", nth=3),
    ), "words stay the words that were written"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it begins with `faults:`"),
        ("[]", "it begins with `faults:`"),
        ("fault: jam", "it begins with `faults:`"),
        ("faults:", "`faults` has no step"),
        ("faults: []", "`faults` has no step"),
        ("faults: {fault: jam}", "`faults` has no step"),
        ("faults: [{fault: jam}]\nfault: 1", "beside `faults` stands 'fault'; did you mean 'faults'?"),
        ("faults: [jam]", "step 1: 'jam' is no step"),
        ("faults: [{fault: jam}, {card: 1}]", "step 2: it names no fault"),
        ("faults: [{fault: misred}]", "step 1: there is no fault 'misred'; did you mean 'misread'?"),
        ("faults: [{fault: jam, crad: 1}]", "step 1 (jam): there is no key 'crad'; did you mean 'card'?"),
        ("faults: [{fault: jam, card: 0}]", "step 1 (jam): card counts from 1, not 0"),
        ("faults: [{fault: jam, nth: -2}]", "step 1 (jam): nth counts from 1, not -2"),
        ("faults: [{fault: jam, card: 1.5}]", "step 1 (jam): card is a whole number, not '1.5'"),
        ("faults: [{fault: jam, card: on}]", "card is a whole number, not 'on'"),
        ("faults: [{fault: jam, card: 0x10}]", "card is a whole number, not '0x10'"),
        ("faults: [{fault: jam, card: ' 1'}]", "card is a whole number, not ' 1'"),
        ("faults: [{fault: jam, card: 9999999999999999999}]", "card is a whole number"),
        ("faults: [{fault: jam, card: [1]}]", "card is one word or number, not a list or map"),
        ("faults: [{fault: [jam]}]", "step 1: fault is one word or number, not a list or map"),
        ("faults: [{fault: jam, time: -1}]", "time is in seconds from the start, 0 or more, not -1"),
        ("faults: [{fault: jam, time: .nan}]", "time is a number, not '.nan'"),
        ("faults: [{fault: jam, time: nan}]", "time is a number, not 'nan'"),
        ("faults: [{fault: jam, time: inf}]", "time is a number, not 'inf'"),
        ("faults: [{fault: jam, time: 1e999}]", "time is in seconds from the start, 0 or more, not inf"),
        ("faults: [{fault: jam, time: soon}]", "time is a number, not 'soon'"),
        ("faults: [{fault: jam, chance: 0}]", "chance is above 0 and at most 1, not 0"),
        ("faults: [{fault: jam, chance: 1.01}]", "chance is above 0 and at most 1, not 1.01"),
        ("faults: [{fault: jam, chance: 0.1, time: 1}]", "chance and time are two moments; one step has one"),
        ("faults: [{fault: jam, nth: 2, card: 1}]", "nth counts the fault's own occasions or commands"),
        ("faults: [{fault: jam, value: ''}]", "value is empty"),
        ("faults: [{fault: jam, value: }]", "value is empty"),
        ("faults: [{fault: jam, fault: drop}]", "line 1: fault stands there 2 times"),
        ("faults: [{fault: jam}]\nfaults: [{fault: jam}]", "line 1: faults stands there 2 times"),
        ("a: &a [1]\nfaults: *a", "line 1: anchors (& and *) are not allowed"),
        ("faults: !!python/object:os.system {}", "line 1: tags (!) are not allowed"),
        ("faults: [{<<: {fault: jam}}]", "step 1: there is no key '<<'"),
        ("faults: [{[a]: 1}]", "it is no YAML"),
        ("faults:\n  - {fault: jam", "it is no YAML"),
        ("faults:\n\t- {fault: jam}", "line 2: it is no YAML"),
        ("%PDF-1.4\n", "it is no YAML"),
        ("\x00\x01", "it is no YAML"),
        ("--- 1\n--- 2\n", "it is no YAML"),
        ("[" * 100, "it is nested too deep"),
        ("x" * (script.LARGEST + 1), "characters"),
    ],
)
def test_what_is_no_script_is_told_in_one_line(text, said):
    assert said in refused(text)


def test_other_names_may_be_allowed():
    assert script.read("faults: [{fault: crash, nth: 3}]", {"crash"}) == (Step("crash", nth=3),)
    assert "there is no fault 'crash'" in refused("faults: [{fault: crash}]")


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12)
MOMENTS = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"card": st.integers(1, 10**9)}),
    st.fixed_dictionaries({"command": WORDS}, optional={"nth": st.integers(1, 99)}),
    st.fixed_dictionaries({"nth": st.integers(1, 10**9)}),
    st.fixed_dictionaries({"chance": st.floats(0, 1, exclude_min=True)}),
    st.fixed_dictionaries({"time": st.floats(0, 86_400.0)}),
)
STEPS = st.builds(
    lambda fault, value, device, moment: Step(fault, value, device, **moment),
    st.sampled_from(list(faults.FAULTS)),
    st.none() | WORDS,
    st.none() | WORDS,
    MOMENTS,
)


@given(st.lists(STEPS, min_size=1, max_size=2).map(tuple))
def test_what_is_written_is_read_back(steps):
    assert script.read(script.dump(steps), faults.FAULTS) == steps


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_script_or_a_clear_error(text):
    for whole in (text, f"faults:\n  - {text}", f"faults: [{{fault: jam, card: {text}}}]"):
        try:
            steps = script.read(whole, faults.FAULTS)
        except ScriptError as error:
            told = str(error)
        else:
            told = steps[0].fault
            assert told in faults.FAULTS
        assert told
        assert "\n" not in told


def test_a_step_is_written_on_one_line():
    assert str(Step("late_answer", "3.1", command="start")) == (
        "{fault: late_answer, value: '3.1', command: start}"
    )
    assert script.dump([Step("drop", chance=0.25)]) == "faults:\n  - {fault: drop, chance: 0.25}\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"card": 0}, {"nth": 0}, {"time": -0.1}, {"time": float("nan")}, {"time": float("inf")},
        {"chance": 0.0}, {"chance": float("nan")}, {"value": ""},
        {"card": 1, "time": 1.0}, {"nth": 1, "chance": 0.5},
    ],
)  # fmt: skip
def test_a_step_that_can_never_be_is_never_made(wrong):
    with pytest.raises(ScriptError):
        Step("jam", **wrong)


# When it strikes


def drawn(bench: Bench) -> list[str | None]:
    return [h.data["face"] for h in bench.machine.happenings if h.kind == "drawn"]


def test_a_fault_of_a_card_strikes_that_card():
    bench = exercises.lived("managed-shoe", [Step("misread", card=4), Step("face_up", card=6)])
    drawn = [h.data for h in bench.machine.happenings if h.kind == "drawn"]
    assert [n for n, data in enumerate(drawn, 1) if data["face"] is None] == [4]
    assert [n for n, data in enumerate(drawn, 1) if data["up"]] == [6]


def test_a_step_may_come_late_but_not_too_late():
    bench = Bench(exercises.MAKE["managed-shoe"]())
    exercises._load_shoe(bench)
    exercises._draw(bench, 3)
    bench.line.add(Step("misread", card=5))
    with pytest.raises(faults.UnfitFault, match="misread at card 3: 3 have left already"):
        bench.line.add(Step("misread", card=3))
    exercises._draw(bench, 6)
    assert [n for n, face in enumerate(drawn(bench), 1) if face is None] == [5]


def test_another_fault_strikes_once_the_card_has_left():
    bench = Bench(exercises.MAKE["managed-shoe"](), [Step("reboot", "5", card=4)])
    exercises.shoe(bench)
    kinds = [h.kind for h in bench.machine.happenings if h.kind in ("drawn", "booted")]
    assert kinds.index("booted") == 4
    assert bench.line.struck == {"reboot": 1}
    assert bench.line.director.cards == len(drawn(bench))


def test_a_card_of_a_shuffler_is_one_that_it_feeds():
    bench = Bench(exercises.MAKE["managed-shuffler"](), [Step("reboot", card=13)])
    bench.hands(lambda: bench.machine.load(exercises._cards(26)))
    bench.run(100.0)
    assert bench.line.struck == {}
    bench.ask(WRITE, 66, 1, {"token": TOKEN}, 0.0)
    fed = bench.machine.fed_at(13)
    assert 0.0 < fed - bench.now < 22.0
    bench.run(fed - bench.now - 0.01)
    assert bench.line.struck == {}
    bench.run(0.02)
    assert bench.line.struck == {"reboot": 1}
    assert bench.machine.boot == 2 or not bench.machine.powered


def test_a_trap_after_a_command_springs_at_that_command():
    bench = Bench(exercises.MAKE["managed-shuffler"](), [Step("late_answer", "3", command="start")])
    bench.hands(lambda: bench.machine.load(exercises._cards(26)))
    bench.ask(READ, 66, 0)
    assert [time for time, _ in bench.seen[1:]] == [0.0]
    bench.ask(WRITE, 66, 1, {"token": TOKEN}, 5.0)
    bench.ask(READ, 66, 0, seconds=5.0)
    assert [time for time, _ in bench.seen[2:]] == [3.3, 5.3]


def test_the_nth_of_a_command_and_any_command():
    steps = [Step("drop", command="status", nth=2), Step("duplicate", command="any", nth=4)]
    bench = Bench(exercises.MAKE["managed-shoe"](), steps)
    answers = []
    for command in ((67, 0), (64, 0), (67, 0), (64, 0), (67, 0)):
        before = len(bench.seen)
        bench.ask(READ, *command)
        answers.append([data.count(b"\x06\x09") for _, data in bench.seen[before:]])
    assert answers == [[1], [1], [], [2], [1]]
    assert bench.line.struck == {"drop": 1, "duplicate": 1}
    assert bench.line.director.commands == {"status": 3, "identity": 2, "any": 5}


def test_an_act_after_a_command_comes_when_it_is_served_and_takes_the_answer():
    bench = Bench(exercises.MAKE["managed-shoe"](), [Step("reboot", "1", command="lock")])
    bench.ask(WRITE, 67, 1, seconds=2.0)
    assert bench.machine.locked
    assert bench.seen == []
    assert bench.machine.boot == 2
    assert [h.kind for h in bench.machine.happenings] == ["lock", "booted"], (
        "the power was there when it locked"
    )


def test_a_time_is_met_exactly():
    steps = [Step("reboot", "1", time=7.25), Step("old_errors", time=3.0)]
    bench = Bench(exercises.MAKE["managed-shoe"](), steps)
    bench.line.advance(100.0)
    (booted,) = (h for h in bench.machine.happenings if h.kind == "booted")
    assert booted.at == 8.25
    assert bench.line.struck == {"reboot": 1, "old_errors": 1}


def test_a_chance_strikes_at_the_same_places_with_the_same_seed():
    def places(seed: object, *more: Step) -> list[int]:
        bench = Bench(exercises.MAKE["managed-shoe"](), [*more, Step("misread", chance=0.3)], seed)
        exercises.shoe(bench)
        return [number for number, face in enumerate(drawn(bench)) if face is None]

    assert places(1) == places(1)
    assert len({tuple(places(seed)) for seed in range(8)}) > 4
    assert places(1, Step("face_up", chance=0.5), Step("drop", nth=3)) == places(1), "what shrinking needs"
    assert 20 < sum(len(places(seed)) for seed in range(10)) < 70


def test_a_chance_of_one_strikes_each_time():
    bench = exercises.lived("managed-shoe", [Step("misread", chance=1.0)])
    assert bench.line.struck["misread"] == len(drawn(bench)) == 14


@pytest.mark.parametrize(
    ("device", "step", "said"),
    [
        ("gat", Step("nak", card=3), "no cards come out of this device"),
        ("hole-card-reader", Step("error", card=3), "no cards come out of this device"),
        ("bee-tek", Step("alarm", command="any"), "this device hears none"),
        (
            "managed-shoe",
            Step("drop", command="lok"),
            "no command 'lok'; did you mean 'lock'? (there are echo",
        ),
        ("managed-shoe", Step("old_errors", nth=2), "old_errors has no occasions"),
        ("managed-shoe", Step("old_errors", chance=0.2), "it is a setting"),
        ("managed-shoe", Step("reboot", nth=2), "it is an act"),
        (
            "managed-shoe",
            Step("jam"),
            "only a shuffler, a dealing machine or a shoe that dispenses stacks can",
        ),
        ("managed-shoe", Step("late_answer", "x"), "'x' is no value for late_answer"),
        ("managed-shoe", Step("meteor"), "there is no fault 'meteor'"),
    ],
)
def test_a_step_that_the_device_cannot_have_is_told_at_once(device, step, said):
    with pytest.raises(faults.UnfitFault) as told:
        Line(exercises.MAKE[device](), Random(0), [step])
    assert said in str(told.value)


def test_a_director_tells_each_step_once():
    struck = []
    director = Director(struck.append)
    steps = [
        Step("drop", card=2),
        Step("drop", time=5.0),
        Step("drop", command="any"),
        Step("drop", time=1.0),
    ]
    for step in steps:
        director.add(step)
    assert director.deadline() == 1.0
    director.card()
    assert struck == []
    director.card()
    director.advance(6.0)
    director.command("lock")
    director.command("lock")
    assert struck == [steps[0], steps[3], steps[1], steps[2]]
    assert not director
    assert director.deadline() is None
