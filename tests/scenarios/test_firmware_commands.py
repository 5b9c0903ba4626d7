"""`cutcard firmware` against simulated devices on ptys, TCP and USB: what changes, and what is only said."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from serial.tools import list_ports

from controller import open_tables
from controller.cli import app, smp_job
from firmware_bridge.capture import read_capture
from firmware_bridge.firmware import jobs, upload
from firmware_bridge.transports import libusb, serial_find
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_host import UsbHost
from simulators.models.firmware import build
from simulators.wire.framings import PACKETS
from tests.support.adapters import adapter
from tests.support.desk import desk, managed_shoe, served
from tests.support.firmware import IMAGE, NEW

OLD_HASH = "39238498a8427435b346587ccee8cf25265391f9cb32a5b38ada0f912dd655c1"


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


Call = Callable[..., Ran]


@pytest.fixture
def firmware(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command in this process; tables of other tests on this machine are not seen."""
    monkeypatch.setattr(open_tables, "any_open", lambda: False)

    def call(*words: object) -> Ran:
        code = 0
        try:
            app.main(["firmware", *map(str, words)])
        except SystemExit as left:
            code = int(left.code or 0)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "shoe-1.2.0.bin"
    made.write_bytes(NEW)
    return made


@pytest.fixture(params=["tcp", "pty", "usb"])
def line(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A shoe with one image on each kind of wire."""
    if request.param == "usb":
        host: Any = UsbHost(managed_shoe(PACKETS))
        monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    else:
        host = {"tcp": TcpHost, "pty": PtyHost}[request.param](managed_shoe())
    with served(host):
        yield host
    if request.param == "usb":
        assert host.bus.left() == {}


def test_list_upload_reset_confirm(line: Any, firmware: Call, file: Path) -> None:
    before = firmware("list", line.uri)
    assert before.code == 0
    assert before.out.splitlines()[1].split() == ["0", "0", "1.0.0", "active", "confirmed", OLD_HASH]
    sent = firmware("upload", line.uri, file)
    assert (sent.code, sent.err) == (0, "")
    assert sent.out.splitlines() == [
        f"pending: 1.2.0, {len(NEW)} bytes sent",
        f"hash {IMAGE.hash}",
        "`firmware reset` starts it, then `firmware confirm` makes it stay",
    ]
    started = firmware("reset", line.uri)
    assert (started.code, started.out.splitlines()[0]) == (0, "runs: 1.2.0")
    assert "on trial: `firmware confirm` makes it stay" in started.out
    kept = firmware("confirm", line.uri, IMAGE.hash[:12].upper(), "--json")
    assert (kept.code, kept.json["outcome"]) == (0, "done")
    assert [(i["version"], i["flags"]) for i in kept.json["answer"]["images"]] == [
        ("1.2.0", ["active", "confirmed"]),
        ("1.0.0", []),
    ]
    said = firmware("echo", line.uri, "häl\x1blo")
    assert (said.code, said.out) == (0, "häl\\x1blo\n")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF", "no firmware image"),
        (NEW[: len(NEW) // 2], "is cut off"),
        (NEW[:99] + bytes(9) + NEW[108:], "damaged"),
    ],
)
def test_a_bad_file_ends_with_2_before_the_port_is_touched(
    data: bytes, says: str, firmware: Call, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.bin"
    bad.write_bytes(data)
    ran = firmware("upload", "serial:/dev/cutcard-no-such-port", bad, "--json")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert says in ran.err


def test_a_foreign_image_ends_with_4_and_nothing_is_erased(firmware: Call, tmp_path: Path) -> None:
    foreign = tmp_path / "shuffler.bin"
    foreign.write_bytes(build("9.9.9", "SIM-SHUFFLER"))
    device = managed_shoe()
    with served(TcpHost(device)) as host:
        ran = firmware("upload", host.uri, foreign, "--json")
    assert (ran.code, ran.json["outcome"], ran.json["code"]) == (4, "refused", "foreign")
    assert "the image is for a SIM-SHUFFLER, the device is a SIM-SHOE: nothing was sent" in ran.err
    assert device.flash.erased == 0


def test_while_a_table_is_open_nothing_changes_and_reading_is_allowed(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    device = managed_shoe()

    def call(*words: object) -> Ran:
        with pytest.raises(SystemExit) as left:
            app.main(["firmware", *map(str, words)])
        return Ran(int(left.value.code or 0), *capsys.readouterr())

    with open_tables.mark_open("BJ-07"), served(TcpHost(device)) as host:
        refused = [
            call(*words, "--json")
            for words in (("upload", host.uri, file), ("confirm", host.uri), ("reset", host.uri))
        ]
        listed = call("list", host.uri)
    for ran in refused:
        assert (ran.code, ran.json["outcome"], ran.json["code"]) == (4, "refused", "table_open")
        assert "close the table first" in ran.err
    assert listed.code == 0
    assert (device.flash.erased, device.machine.boot) == (0, 1)


def test_a_port_that_another_program_has_ends_with_3_and_its_name(tmp_path: Path, file: Path) -> None:
    with desk() as bench:
        host = bench.serve(PtyHost(managed_shoe()))
        holder = bench.cutcard("monitor", host.uri, "--driver", "managed-shoe")
        bench.until(lambda: len(holder.err) > 0)
        code, out, err = bench.end_of(bench.cutcard("firmware", "upload", host.uri, str(file), alone=True))
    assert (code, out) == (3, [])
    assert f"is held by process {holder.pid}" in err[-1]


# The answer of the device afterwards is what counts


def test_i34_a_device_that_keeps_its_old_image_ends_with_4(firmware: Call, file: Path) -> None:
    device = managed_shoe()
    device.flash.traps.set("keep_old")
    with served(TcpHost(device)) as host:
        assert firmware("upload", host.uri, file).code == 0
        ran = firmware("reset", host.uri, "--json")
    assert (ran.code, ran.json["outcome"], ran.json["code"]) == (4, "refused", "other_image")
    assert f"1.2.0 ({IMAGE.hash}) was to run; what runs: 1.0.0 ({OLD_HASH})" in ran.err


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device may stay away for 3 s, and is looked for at once."""
    monkeypatch.setattr(jobs, "BACK_S", 3.0)
    monkeypatch.setattr(smp_job, "LOOK_S", 0.2)
    monkeypatch.setattr(smp_job, "TURN_S", 0.1)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("seconds", [1.0, None], ids=["for a second", "for good"])
def test_i37_a_bootloader_with_another_usb_id_is_followed_by_its_serial_number(
    seconds: float | None, firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = UsbHost(managed_shoe(PACKETS))
    host.device.flash.traps.set("stay_in_bootloader", 1, seconds)
    uri = host.uri
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    with served(host):
        assert firmware("upload", uri, file).code == 0
        ran = firmware("reset", uri, "--json")
        assert host.bus.left() == {}
        moves = [line for line in ran.err.splitlines() if "waiting" not in line]
        assert moves[0] == "the device SH0001 is at usb:1209:000f:SH0001 now"
        if seconds:
            assert (ran.code, ran.json["answer"]["version"]) == (0, "1.2.0")
            assert moves[1:] == [f"the device SH0001 is at {uri} now"]
        else:
            assert (ran.code, ran.json["outcome"]) == (3, "unknown")
            assert "its bootloader answers, and no image runs" in ran.err
            assert firmware("list", host.uri, "--json").json["answer"]["images"][0]["flags"] == []
            again = firmware("reset", host.uri)
            assert (again.code, again.out.splitlines()[0]) == (0, "runs: 1.0.0")


class _Adapter(PtyHost):
    """A USB serial port: the kernel makes it anew at each start, for the bootloader as another one."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._boot = device.machine.boot
        self.paths = [self.path]

    @property
    def found(self) -> list[Any]:
        product = 0x000F if self.device.in_bootloader else 0x0002  # type: ignore[attr-defined]
        return [adapter(self.path, "SH0001", vid=0x1209, pid=product)]

    def pump(self, now: float) -> None:
        super().pump(now)
        if self.device.machine.boot != self._boot:
            self._boot = self.device.machine.boot
            self.replug()
            self.paths.append(self.path)


@pytest.mark.usefixtures("hasty")
def test_i37_another_pty_and_another_id_are_the_same_device(
    firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = _Adapter(managed_shoe())
    host.device.flash.traps.set("stay_in_bootloader", 1, 1.0)  # type: ignore[attr-defined]
    monkeypatch.setattr(list_ports, "comports", lambda: host.found)
    monkeypatch.setattr(serial_find, "_built_in", list)
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(UsbBus()))
    with served(host):
        assert firmware("upload", "serial:1209:0002:SH0001", file).code == 0
        ran = firmware("reset", "serial:1209:0002:SH0001", "--json")
    assert (ran.code, ran.json["answer"]["version"]) == (0, "1.2.0"), ran.err
    assert len(host.paths) == 3
    assert host.paths[1] not in {host.paths[0], host.paths[2]}
    assert "is at serial:1209:000f:SH0001 now" in ran.err


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("wire", ["pty", "usb"])
def test_i37_unplugged_in_mid_upload_it_goes_on_when_it_is_back(
    wire: str, firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host: Any
    if wire == "usb":
        host = UsbHost(managed_shoe(PACKETS))
        monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    else:
        host = PtyHost(managed_shoe(), tmp_path / "shoe")
    device = host.device
    device.buffer = 384
    pump, take, taken = host.pump, device.images.upload, []

    def counted(body: Any) -> Any:
        taken.append(body["off"])
        return take(body)

    def pulled(now: float) -> None:
        pump(now)
        if len(taken) == 3:
            taken.append(-1)
            host.replug()

    device.images.upload = counted
    host.pump = pulled
    with served(host):
        ran = firmware("upload", host.uri, file, "--json")
    assert (ran.code, ran.json["answer"]["state"]) == (0, "pending"), ran.err
    assert device.flash.erased == 1
    assert "the upload goes on there" in ran.err


def test_a_device_that_is_unplugged_for_good_is_given_up(
    firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jobs, "BACK_S", 0.5)
    monkeypatch.setattr(upload, "BACK_S", 0.5)
    monkeypatch.setattr(smp_job, "TURN_S", 0.1)
    host = PtyHost(managed_shoe(), tmp_path / "shoe")
    device, pump = host.device, host.pump
    device.buffer = 384  # type: ignore[attr-defined]

    def pulled(now: float) -> None:
        pump(now)
        if device.flash.received > 600:  # type: ignore[attr-defined]
            host.unplug()

    host.pump = pulled  # type: ignore[method-assign]
    with served(host):
        ran = firmware("upload", host.uri, file, "--json")
    assert (ran.code, ran.json["outcome"]) == (3, "unknown")
    assert "the device was not there again within 0.5 s" in ran.err
    assert "shoe is not there" in ran.err.splitlines()[-1]


def test_only_what_writes_pushes_the_answers_of_other_hosts_out(firmware: Call) -> None:
    device = managed_shoe()
    echoes, answer = [], device._commands[0, 0, 2]
    device._commands[0, 0, 2] = lambda body: echoes.append(body) or answer(body)  # type: ignore[func-returns-value]
    with served(TcpHost(device)) as host:
        firmware("list", host.uri)
        assert len(echoes) == 1
        firmware("confirm", host.uri)
        assert len(echoes) == 5


# What is shown meanwhile


def test_progress_and_what_the_device_prints_are_on_stderr(
    firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smp_job, "PROGRESS_S", (0.1, 0.1))
    monkeypatch.setattr(smp_job, "TURN_S", 0.05)
    device = managed_shoe()
    device.flash.erase_s = 0.5
    device.traps.set("chatter", 9, "\x1b[2Jfan: slow")
    with served(TcpHost(device)) as host:
        ran = firmware("upload", host.uri, file, "--json")
    assert (ran.code, ran.json["answer"]["sent"]) == (0, len(NEW))
    lines = ran.err.splitlines()
    assert "the device prints: \\x1b[2Jfan: slow" in lines
    assert "upload: the device is at work, 0 s" in lines
    assert any(text.startswith("upload: ") and text.endswith(" kB/s") for text in lines) or len(lines) > 2


def test_a_short_job_is_quiet_and_a_silent_device_is_told_once(
    firmware: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smp_job, "SESSION_S", 0.3)
    monkeypatch.setattr(smp_job, "TURN_S", 0.05)
    device = managed_shoe()
    device.traps.set("silent")
    with served(TcpHost(device)) as host:
        ran = firmware("upload", host.uri, file, "--json")
    assert (ran.code, ran.json["outcome"], ran.json["code"]) == (3, "not_sent", "silent")
    assert ran.err == "cutcard: upload was not begun: the device gave no session within 0.3 s\n"


def test_no_port_is_absent(firmware: Call, file: Path) -> None:
    ran = firmware("upload", "serial:/dev/cutcard-no-such-port", file, "--json")
    assert (ran.code, ran.json["outcome"], ran.json["code"]) == (3, "not_sent", "absent")


def test_a_signal_in_mid_upload_tells_how_far_it_was(file: Path) -> None:
    device = managed_shoe()
    device.buffer = 384
    device.traps.set("silent", 11)
    with desk() as bench:
        host = bench.serve(TcpHost(device))
        child = bench.cutcard("firmware", "upload", host.uri, str(file), "--json", alone=True)
        bench.until(lambda: device.requests > 10)
        child.process.send_signal(signal.SIGINT)
        code, out, err = bench.end_of(child)
    assert (code, json.loads(out[0])["outcome"]) == (3, "unknown")
    assert "SIGINT came first; " in err[-1]
    assert f" of {len(NEW)} bytes were in the device): the device keeps what it runs" in err[-1]


def test_the_wire_is_recorded_where_it_is_asked_for(
    firmware: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "wire.pcapng"
    monkeypatch.setenv("CUTCARD_CAPTURE", str(record))
    with served(TcpHost(managed_shoe())) as host:
        assert firmware("list", host.uri).code == 0
    with record.open("rb") as source:
        assert len(list(read_capture(source, str(record), print))) >= 8


def test_what_cannot_be_right_is_a_usage_error(firmware: Call) -> None:
    for words in (("echo", "socket:127.0.0.1:1", "x" * 65), ("confirm", "socket:127.0.0.1:1", "xyz")):
        ran = firmware(*words)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)


def test_upload_uses_no_more_than_it_says() -> None:
    """The longest wait of an upload is for an opening packet without the image's hash."""
    assert upload.ERASE_S + jobs.BACK_S < 180
