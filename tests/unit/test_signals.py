"""A signal is told at once, also when the main thread would not see it before its wait ends."""

from __future__ import annotations

import queue
import signal
import threading

import pytest

from controller.signals import WANTED, told_of_signals


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


def test_what_was_set_before_is_set_again() -> None:
    handlers = [signal.getsignal(number) for number in WANTED]
    with told_of_signals(lambda _: None):
        assert [signal.getsignal(number) for number in WANTED] != handlers
    assert [signal.getsignal(number) for number in WANTED] == handlers
    assert signal.set_wakeup_fd(-1) == -1
