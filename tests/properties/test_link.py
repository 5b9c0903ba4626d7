"""The command-life machine against every short input sequence, and against a simple model."""

from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.link import (
    Again,
    Complete,
    Done,
    Link,
    Lost,
    NotSent,
    Overdue,
    Received,
    Refused,
    Send,
    Submit,
    Tick,
    Unasked,
    Unknown,
    step,
)


def play(link, moves):
    """Outputs of `moves`, each (input, seconds that pass before it)."""
    now, log = 0.0, []
    for event, wait in moves:
        now += wait
        link, out = step(link, event, now)
        log += [(now, item) for item in out]
    return link, log


def submit(call, key="k", **more):
    return Submit(call, call.encode(), key, 1.0, **more)


def test_done_refused_and_unknown():
    link, log = play(
        Link(),
        [
            (submit("a"), 0),
            (Received("k", Done({"x": 1})), 0.5),
            (submit("b"), 0),
            (Received("k", Refused("21")), 0.5),
            (submit("c"), 0),
            (Tick(), 1.0),
        ],
    )
    assert [item for _, item in log] == [
        Send(b"a"),
        Complete("a", Done({"x": 1})),
        Send(b"b"),
        Complete("b", Refused("21")),
        Send(b"c"),
        Complete("c", Unknown("no answer within 1 s")),
    ]
    assert link.idle
    assert link.deadline() is None


def test_a_retry_sends_the_same_bytes_and_ends_after_the_last_attempt():
    _, log = play(Link(), [(submit("a", attempts=3), 0), *[(Tick(), 0.5)] * 12])
    assert log == [
        (0.0, Send(b"a")),
        (1.0, Send(b"a")),
        (2.0, Send(b"a")),
        (3.0, Complete("a", Unknown("no answer within 1 s in 3 attempts"))),
    ]


def test_equal_keys_wait_for_each_other_and_other_keys_pass():
    _, log = play(
        Link(),
        [(submit("a"), 0), (submit("b"), 0), (submit("c", key="z"), 0), (Received("k", Done()), 0.1)],
    )
    assert [item for _, item in log] == [Send(b"a"), Send(b"c"), Complete("a", Done()), Send(b"b")]


def test_lost_is_unknown_for_the_sent_and_not_sent_for_the_waiting():
    link, log = play(Link(), [(submit("a"), 0), (submit("b"), 0), (Lost("cable"), 0.1)])
    assert [item for _, item in log] == [
        Send(b"a"),
        Complete("a", Unknown("cable")),
        Complete("b", NotSent("cable")),
    ]
    assert link.idle


def test_i26_a_late_reply_never_answers_the_next_command():
    late = (Received("k", Done({"of": "a"})), 0.5)
    moves = [
        (submit("a", hold=2.0), 0),
        (Tick(), 1.0),
        (submit("b"), 0),
        late,
        (Received("k", Done({"of": "b"})), 0.1),
    ]
    link, log = play(Link(), moves)
    assert [item for _, item in log] == [
        Send(b"a"),
        Complete("a", Unknown("no answer within 1 s")),
        Unasked("k", Done({"of": "a"}), "late"),
        Send(b"b"),
        Complete("b", Done({"of": "b"})),
    ]
    assert (link.late, link.duplicate, link.foreign) == (1, 0, 0)


def test_without_a_late_reply_the_held_key_opens_by_itself():
    link, _log = play(Link(), [(submit("a", hold=2.0), 0), (Tick(), 1.0), (submit("b"), 0)])
    assert link.deadline() == 3.0
    link, out = step(link, Tick(), 3.0)
    assert out == [Send(b"b")]


def test_i26_a_reply_from_before_a_loss_never_answers_the_first_command_after_it():
    """A serial server keeps what the device sent while we reconnected."""
    link, log = play(
        Link(),
        [
            (submit("a", hold=2.0), 0),
            (Lost("cable"), 0.5),
            (submit("b"), 0.3),
            (Received("k", Done({"of": "a"})), 0.1),
            (Received("k", Done({"of": "b"})), 0.1),
        ],
    )
    assert [item for _, item in log] == [
        Send(b"a"),
        Complete("a", Unknown("cable")),
        Unasked("k", Done({"of": "a"}), "late"),
        Send(b"b"),
        Complete("b", Done({"of": "b"})),
    ]
    link, _ = play(Link(), [(submit("a", hold=2.0), 0), (Lost("cable"), 0.5), (submit("b"), 0.3)])
    assert link.deadline() == 2.5


def test_a_guarded_command_is_repeated_only_when_that_was_proved_safe():
    link, log = play(Link(), [(submit("a", attempts=3, guarded=True), 0), (Tick(), 1.0), (Tick(), 0.5)])
    assert log == [(0.0, Send(b"a")), (1.0, Overdue("a"))]
    link, log = play(link, [(Again("a"), 1.7), (Again("a"), 0.1), (Received("k", Done()), 0.1)])
    assert [item for _, item in log] == [Send(b"a"), Complete("a", Done())]


def test_a_guarded_command_that_nobody_proves_safe_ends_unknown_in_time():
    _, log = play(Link(), [(submit("a", attempts=3, guarded=True), 0), *[(Tick(), 0.5)] * 12])
    assert log == [
        (0.0, Send(b"a")),
        (1.0, Overdue("a")),
        (4.0, Complete("a", Unknown("no answer within 1 s in 3 attempts"))),
    ]


def test_an_overdue_command_is_still_answered_and_then_not_repeated():
    _, log = play(
        Link(),
        [
            (submit("a", attempts=3, guarded=True), 0),
            (Tick(), 1.0),
            (Received("k", Done()), 0.1),
            (Again("a"), 0.1),
        ],
    )
    assert [item for _, item in log] == [Send(b"a"), Overdue("a"), Complete("a", Done())]


def test_i27_foreign_and_duplicate_replies_change_nothing_and_are_counted():
    link, log = play(
        Link(),
        [
            (submit("a"), 0),
            (Received("other", Refused("1")), 0.1),
            (Received("k", Done()), 0.1),
            (Received("k", Done()), 0.1),
        ],
    )
    assert [item for _, item in log] == [
        Send(b"a"),
        Unasked("other", Refused("1"), "foreign"),
        Complete("a", Done()),
        Unasked("k", Done(), "duplicate"),
    ]
    assert (link.late, link.duplicate, link.foreign) == (0, 1, 1)


def test_the_queue_is_bounded_and_the_same_call_id_is_one_command():
    link = Link(window=1, queue_limit=2)
    _, log = play(link, [(submit(c), 0) for c in "abbcd"])
    assert [item for _, item in log] == [
        Send(b"a"),
        Complete("d", NotSent("too many commands wait for this device")),
    ]


def test_many_foreign_replies_are_remembered_in_bounded_space():
    link = Link()
    for number in range(500):
        link, _ = step(link, submit(f"c{number}", key=number), float(number * 3))
        link, _ = step(link, Tick(), number * 3 + 1.5)
    assert len(link.ended) == 16


MOVES = (
    submit("a"),
    submit("b", attempts=2),
    submit("c", key="z", hold=1.0),
    submit("d", attempts=2, guarded=True),
    Again(""),
    Received("k", Done()),
    Received("z", Refused("9")),
    Tick(),
    Lost("gone"),
)


def check(moves, link=Link()):  # noqa: B008 - a frozen value
    """What must hold of every history. Time is passed by Ticks at each deadline, as the port does."""
    now, sent, ended, asked, overdue = 0.0, {}, {}, set(), ""

    def take(link, event, now):
        link, out = step(link, event, now)
        for item in out:
            match item:
                case Send(data):
                    call = data.decode()
                    assert call not in ended, "bytes after the end"
                    sent[call] = sent.get(call, 0) + 1
                    assert call[0] != "d" or sent[call] == 1 or isinstance(event, Again)
                case Overdue(call):
                    nonlocal overdue
                    overdue = call
                case Complete(call, outcome):
                    assert call in asked
                    assert call not in ended, "a second end"
                    ended[call] = outcome
                    assert isinstance(outcome, NotSent) is (call not in sent)
                    if isinstance(outcome, Done | Refused):
                        assert isinstance(event, Received)
                        assert event.outcome == outcome
                case Unasked():
                    assert isinstance(event, Received)
                    assert len(out) == 1 or not any(
                        isinstance(o, Complete) and isinstance(o.outcome, Done | Refused) for o in out
                    )
        open_keys = [p.submit.key for p in link.pending]
        assert len(set(open_keys)) == len(open_keys) <= link.window
        assert len(link.queue) <= link.queue_limit
        return link

    for number, (event, wait) in enumerate(moves):
        if isinstance(event, Submit):
            call = f"{event.call_id}{number}"
            event = replace(event, call_id=call, data=call.encode())
            asked.add(call)
        if isinstance(event, Again):
            event = Again(overdue)
        now += wait
        while (due := link.deadline()) is not None and due <= now:
            link = take(link, Tick(), due)
        link = take(link, event, now)
    for _ in range(100):
        if link.idle:
            break
        link = take(link, Tick(), link.deadline())
    assert ended.keys() == asked, "a command without an end"
    assert all(count <= 2 for count in sent.values())


def test_every_history_of_four_inputs():
    for moves in product(MOVES, repeat=4):
        check([(m, 0.4) for m in moves])


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(MOVES), st.sampled_from([0.0, 0.3, 1.0, 2.5])), max_size=25),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_long_histories(moves, window, queue_limit):
    check(moves, Link(window=window, queue_limit=queue_limit))
