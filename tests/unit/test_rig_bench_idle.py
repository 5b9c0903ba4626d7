"""The measure of an idle daemon must be able to see one that is not idle."""

import os
import select
import threading

from simulators.rig.bench_idle import Spent


def test_wake_ups_of_every_thread_are_counted() -> None:
    reader, writer = os.pipe()
    done = threading.Event()

    def polling() -> None:
        for _ in range(25):
            select.select([reader], [], [], 0.001)
        done.set()
        select.select([reader], [], [])

    before = Spent.of(os.getpid())
    thread = threading.Thread(target=polling)
    thread.start()
    try:
        assert done.wait(10)
        after = Spent.of(os.getpid())
    finally:
        os.write(writer, b"x")
        thread.join()
        os.close(reader)
        os.close(writer)
    assert after.threads == before.threads + 1
    assert after.switches - before.switches >= 25
    assert after.at > before.at


def test_processor_time_is_counted() -> None:
    before = Spent.of(os.getpid())
    until = os.times().user + 0.05
    while os.times().user < until:
        pass
    assert 0.03 <= Spent.of(os.getpid()).cpu - before.cpu < 5.0
