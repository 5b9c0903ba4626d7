"""A signal is told at once, also when the main thread would not see it before its wait ends."""

from __future__ import annotations

import queue
import select
import signal
import threading
import time

import pytest

from controller.signals import WANTED, told_of_signals
from simulators.rig.signals import ended_by_signals


@pytest.mark.parametrize("number", WANTED, ids=str)
def test_a_signal_that_does_not_end_the_main_thread_s_wait_is_told(number: signal.Signals) -> None:
    """As when it comes just before the wait: here another thread takes it, so the wait goes on."""
    told: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()
    waiting = threading.Event()

    def strike() -> None:
        waiting.wait(5.0)
        signal.pthread_kill(threading.get_ident(), number)

    thread = threading.Thread(target=strike)
    with told_of_signals(told.put):
        thread.start()
        waiting.set()
        assert told.get(timeout=5.0) is number
        thread.join()


@pytest.mark.parametrize("number", WANTED, ids=str)
def test_a_simulator_ends_though_no_signal_ended_its_wait(number: signal.Signals) -> None:
    """Once: a second one does not interrupt the cleaning up."""
    waiting, cleaned = threading.Event(), []

    def strike() -> None:
        waiting.wait(5.0)
        signal.pthread_kill(threading.get_ident(), number)

    def play() -> None:
        try:
            waiting.set()
            select.select([], [], [], 20.0)
        finally:
            signal.raise_signal(number)
            select.select([], [], [], 0.1)
            cleaned.append(True)

    thread = threading.Thread(target=strike)
    handlers = [signal.getsignal(number) for number in (*WANTED, signal.SIGUSR1)]
    thread.start()
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        play()
    assert time.monotonic() - since < 10.0
    assert cleaned == [True]
    thread.join()
    assert [signal.getsignal(number) for number in (*WANTED, signal.SIGUSR1)] == handlers


def test_a_simulator_that_ends_by_itself_is_not_ended_again() -> None:
    with ended_by_signals():
        pass


def test_what_was_set_before_is_set_again() -> None:
    handlers = [signal.getsignal(number) for number in WANTED]
    with told_of_signals(lambda _: None):
        assert [signal.getsignal(number) for number in WANTED] != handlers
    assert [signal.getsignal(number) for number in WANTED] == handlers
    assert signal.set_wakeup_fd(-1) == -1
