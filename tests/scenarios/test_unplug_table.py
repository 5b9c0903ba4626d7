"""A device of an open table is unplugged: the daemon lives, says why, recovers alone and loses no card."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controller.cli.client import ask
from simulators.rig.demo import Place, set_up
from simulators.rig.live import Connection, Live
from tests.support.demo import journal_facts, small_demo
from tests.support.desk import desk, managed_shoe, never_answered
from tests.support.plugs import Usb
from tests.support.umockdev import needs_umockdev

IN_HAND = {"dealing", "playing", "hole_due", "side_wagers"}


def status_of(place: Place) -> dict[str, Any]:
    return dict(ask(place.control, {"get": "status"})["status"])


def facts_of(live: Live, kind: str, source: str) -> list[dict[str, Any]]:
    return [f for f in live.acknowledged.values() if (f["kind"], f["source"]) == (kind, source)]


@contextmanager
def taken(path: Path) -> Iterator[None]:
    """Somebody else has that pty's number meanwhile."""
    ends: list[int] = []
    try:
        while not path.exists():
            ends += pty.openpty()
        yield
    finally:
        for end in ends:
            os.close(end)


def plugged_back(live: Live, device: str) -> float:
    """Seconds until the daemon has its session with the device again."""
    since = live.elapsed
    live.replug(device)
    live.run(lambda: device in live.view.up)
    return live.elapsed - since


def pull_before_the_next_card_of_a_deal(live: Live) -> None:
    """The shoe is unplugged in mid-round, and the next card comes out of it all the same."""
    draw, known = live.felt.draw, live.view.cards

    def pulled(place: str) -> Any:
        if live.view.phase == "dealing" and live.view.cards > known + 1:
            live.unplug("shoe")
            live.felt.draw = draw
        return draw(place)

    live.felt.draw = pulled
    live.run(lambda: not live.hosts["shoe"].plugged)


def played_to_the_end(live: Live, place: Place, cards: int) -> None:
    live.run(lambda: False)
    assert live.stop() == 0
    live.felt.referee.check()
    assert live.felt.referee.violations == []
    assert live.view.cards == live.felt.referee.cards == cards
    assert journal_facts(place).items() >= live.acknowledged.items()


def test_i12_a_shoe_unplugged_in_mid_round_comes_back_under_another_number_and_no_card_is_lost() -> None:
    with small_demo("unplug", 1, 2) as (place, live):
        live.start()
        for pulls in (1, 2, 3):
            pty_before = live.hosts["shoe"].link.readlink()
            pull_before_the_next_card_of_a_deal(live)
            assert live.view.seen["shoe"] != live.felt.newest()["shoe"], "a card came out meanwhile"
            live.run(lambda: "shoe" not in live.view.up)
            status = status_of(place)
            port = status["ports"]["shoe"]
            assert (status["phase"], status["devices"]["shoe"]["up"]) == ("dealing", False)
            assert port["link"] in {"linklost", "absent"}
            assert "unplugged" in port["text"] or "not there" in port["text"] or "lost" in port["text"]
            with taken(pty_before):
                assert plugged_back(live, "shoe") < 2.0
            assert live.hosts["shoe"].link.readlink() != pty_before
            downs = facts_of(live, "link_down", "shoe")
            assert len(downs) == pulls
            assert len(facts_of(live, "link_up", "shoe")) == pulls + 1
        assert all(down["reason"] for down in downs)
        played_to_the_end(live, place, 104)
        assert live.view.faults_latched == 0


def test_i38_a_shuffler_unplugged_under_its_start_leaves_it_unknown_and_is_not_asked_to_start_again() -> None:
    """Back again it tells whose cycle it runs: the token says that it is ours."""
    with small_demo("unplug", 1, 1) as (place, live):
        wire = live.felt.shuffler_wire
        answered = wire._commands[66, 1, 2]
        heard = never_answered(wire, 66, 1)
        live.start()
        live.run(lambda: bool(heard))
        live.unplug("shuffler")
        live.run(lambda: "shuffler" not in live.view.up)
        end = facts_of(live, "command_ended", "shuffler")[-1]
        assert (end["command"], end["outcome"]) == ("start", "unknown")
        assert live.hosts["shuffler"].path in end["reason"]
        assert status_of(place)["devices"]["shuffler"]["up"] is False
        wire._commands[66, 1, 2] = answered
        assert plugged_back(live, "shuffler") < 2.0
        live.run(lambda: live.view.cycle == "proved")
        assert len(heard) == 1
        assert [h.kind for h in live.felt.shuffler.happenings].count("cycle_started") == 1
        played_to_the_end(live, place, 52)
        started = facts_of(live, "cycle_started", "shuffler")[0]
        unheard = end["fact"] < started["fact"]  # the plug was quicker than the machine's own event
        latched = [f["code"] for f in live.acknowledged.values() if f["kind"] == "fault_latched"]
        assert sorted(latched) == ["device_down", *["start_unknown"] * unheard]


class Followed:
    """The facts of a daemon, heard like a host."""

    def __init__(self, control: Path) -> None:
        self._connection = Connection(control, 0)
        self.facts: list[dict[str, Any]] = []

    def kinds(self, source: str) -> list[str]:
        return [f["kind"] for f in self.facts if f.get("source") == source]

    def filenos(self) -> list[int]:
        return [self._connection.sock.fileno()]

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> None:
        return None

    def pump(self, now: float) -> None:
        del now
        self.facts += self._connection.read() or []

    def close(self) -> None:
        self._connection.sock.close()


@needs_umockdev
def test_i47_a_usb_shoe_comes_back_under_another_address_and_the_daemon_leaves_nothing_claimed(
    tmp_path: Path,
) -> None:
    usb = Usb(managed_shoe, tmp_path)
    with set_up() as place, desk() as bench:
        bench.hosts += usb.hosts
        port = place.table.read_text().replace(f"serial:{place.ports['shoe']}", usb.host.uri)
        place.table.write_text(port)
        daemon = bench.cutcard("run", str(place.table), **usb.env)
        bench.until(lambda: any('"ready"' in line for line in daemon.err) or not daemon.open)
        follower = Followed(place.control)
        bench.hosts.append(follower)
        bench.until(lambda: "link_up" in follower.kinds("shoe"))
        address = usb.host.usb.address
        usb.unplug()
        bench.until(lambda: "link_down" in follower.kinds("shoe"))
        shoe = status_of(place)["ports"]["shoe"]
        assert shoe["link"] in {"linklost", "absent"}
        assert usb.device.serial in shoe["text"]
        usb.host.replug()
        assert bench.until(lambda: follower.kinds("shoe").count("link_up") == 2) < 2.0
        assert usb.host.usb.address != address
        daemon.process.terminate()
        assert bench.end_of(daemon)[0] == 0
        bench.until(usb.is_free)


def test_i10_the_daemon_s_port_is_busy_for_every_other_command_and_its_process_is_named() -> None:
    with small_demo("held", 1, 1) as (place, live), desk() as bench:
        live.start()
        live.run(lambda: len(live.view.up) == 2)
        port = f"serial:{place.ports['shuffler']}"
        asked = [
            bench.cutcard("send", port, "--driver", "managed-shuffler", "abort", "--json"),
            bench.cutcard("monitor", port, "--driver", "managed-shuffler"),
        ]
        bench.until(lambda: not any(child.open for child in asked))
        for child in asked:
            assert child.code == 3
            assert f"is held by process {live.daemon.pid} (" in child.err[-1]
        assert json.loads(asked[0].out[0])["code"] == "busy"
        assert live.stop() == 0
