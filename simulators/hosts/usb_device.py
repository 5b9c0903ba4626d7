"""A simulated USB device without a bus: what it is, what it does with transfers, who has claimed it.

It is mounted by a pyusb back end (usb_backend.py) and by umockdev's preload (umockdev_host.py), and keeps the
rules that Linux and the wire keep: packets, halted endpoints, claims, bound kernel drivers.
"""

from __future__ import annotations

import errno
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from queue import SimpleQueue

from simulators.hosts import usb_descriptors as d
from simulators.hosts.usb_identity import UsbIdentity, refused

IN_LIMIT = 65536
"""Bytes kept for a host that does not read; what comes after that is dropped, whole transfers at a time."""


class Transfer:
    """One bulk or interrupt transfer of a host. `finished` is called once, under the device's lock.

    `data` is what is to go out, or what has come in; `actual` counts its bytes that really went or came.
    `error` is None while the transfer waits, 0 when it is done, else an errno. `owner` is who claimed.
    """

    __slots__ = ("actual", "data", "endpoint", "error", "finished", "owner", "size")

    def __init__(
        self,
        endpoint: int,
        finished: Callable[[Transfer], None],
        *,
        data: bytes = b"",
        size: int = 0,
        owner: object = None,
    ) -> None:
        self.endpoint = endpoint
        self.finished = finished
        self.data = bytearray(data)
        self.size = size
        self.owner = owner
        self.actual = 0
        self.error: int | None = None


class UsbDevice(UsbIdentity):
    """Thread-safe. Refusals are OSErrors with the errno that Linux gives.

    `heard(endpoint, data)` gets every whole OUT transfer (0: a HID report sent by control), under the
    lock; it puts them into `received` unless replaced. `drivers` are the kernel drivers that bind at each
    plugging in, by interface. `denied`: nobody may open it. `room`: how many OUT bytes it still takes before
    it answers NAK (None: all). `dropped` counts transfers that nobody read in time.
    """

    def __init__(
        self,
        vendor: int = 0x1209,
        product: int = 0x0001,
        *,
        maker: str | None = "Cutcard",
        name: str | None = "Cutcard Shuffler",
        serial: str | None = "SF0001",
        configurations: tuple[d.Configuration, ...] = (d.Configuration(),),
        speed: int = 12,
    ) -> None:
        super().__init__(vendor, product, (maker, name, serial), configurations)
        self.speed = speed
        self.drivers: dict[int, str] = {}
        self.denied = False
        self.lock = threading.RLock()
        self.received: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        self.heard: Callable[[int, bytes], None] = lambda endpoint, data: self.received.put((endpoint, data))
        self.bus = self.address = self.port = 0
        self.attachment = 0
        self.dropped = 0
        self.gone = True
        self.room: int | None = None
        self._power_up()

    def _power_up(self) -> None:
        self.configuration = self.configurations[0].value
        self.bound = dict(self.drivers)
        self.detached = 0
        self.claims: dict[int, object] = {}
        self.alternates.clear()
        self.halted.clear()
        self._packets: defaultdict[int, deque[bytes]] = defaultdict(deque)
        self._waiting: defaultdict[int, deque[Transfer]] = defaultdict(deque)
        self._unended: defaultdict[int, bytearray] = defaultdict(bytearray)

    # The plug

    def plugged_in(self, bus: int, address: int, port: int) -> None:
        with self.lock:
            self._power_up()
            self.bus, self.address, self.port = bus, address, port
            self.attachment += 1
            self.gone = False

    def pulled_out(self) -> None:
        with self.lock:
            self.gone = True
            self._end_all(errno.ENODEV)
            self._power_up()

    def check(self, attachment: int | None = None) -> None:
        """OSError ENODEV when it is not there, or not there as that attachment any more."""
        if self.gone or attachment not in (None, self.attachment):
            raise refused(errno.ENODEV)

    # What a program asks of the kernel

    def claim(self, interface: int, owner: object) -> None:
        with self.lock:
            self._check_interface(interface)
            if interface in self.bound or self.claims.get(interface, owner) is not owner:
                raise refused(errno.EBUSY)
            self.claims[interface] = owner

    def release(self, interface: int, owner: object) -> None:
        with self.lock:
            if self.claims.get(interface) is not owner:
                raise refused(errno.EINVAL)
            del self.claims[interface]
            self.alternates.pop(interface, None)

    def let_go(self, owner: object) -> None:
        """What closing a handle does: claims fall, transfers end."""
        with self.lock:
            for number in [n for n, holder in self.claims.items() if holder is owner]:
                self.release(number, owner)
            for transfers in list(self._waiting.values()):
                for transfer in [t for t in transfers if t.owner is owner]:
                    self.cancel(transfer)

    def driver_of(self, interface: int) -> str | None:
        with self.lock:
            self.check()
            return self.bound.get(interface)

    def detach(self, interface: int) -> None:
        with self.lock:
            self._check_interface(interface)
            if self.bound.pop(interface, None) is None:
                raise refused(errno.ENODATA)
            self.detached += 1

    def attach(self, interface: int) -> bool:
        """Put the driver back that binds this interface; False when there is none. EBUSY as for `claim`."""
        with self.lock:
            self._check_interface(interface)
            if interface in self.bound or interface in self.claims:
                raise refused(errno.EBUSY)
            if interface not in self.drivers:
                return False
            self.bound[interface] = self.drivers[interface]
            self.detached -= 1
            return True

    def configure(self, value: int) -> None:
        """Set the configuration; even the same value is refused while an interface is bound or claimed."""
        with self.lock:
            self.check()
            if self.bound or self.claims:
                raise refused(errno.EBUSY)
            if value and value not in [c.value for c in self.configurations]:
                raise refused(errno.EINVAL)
            self.configuration = value
            self.alternates.clear()
            self.halted.clear()

    def set_alternate(self, interface: int, alternate: int) -> None:
        with self.lock:
            active = self._check_interface(interface)
            if alternate not in [i.alternate for i in active.settings(interface)]:
                raise refused(errno.EINVAL)
            self.alternates[interface] = alternate

    def clear_halt(self, endpoint: int) -> None:
        with self.lock:
            self.check()
            self.find(endpoint)
            self.halted.discard(endpoint)

    def reset(self) -> None:
        """A port reset: what is queued or halted is forgotten, claims stay."""
        with self.lock:
            self.check()
            self._end_all(errno.EPROTO)
            self.halted.clear()
            self._packets.clear()
            self._unended.clear()

    def submit(self, transfer: Transfer) -> None:
        """Take a transfer; it finishes now or later. An unclaimed interface is claimed, as Linux does."""
        with self.lock:
            self.check()
            interface, endpoint = self.find(transfer.endpoint)
            self.claim(interface.number, transfer.owner)
            if endpoint.address in self.halted:
                self._end(transfer, errno.EPIPE)
                return
            self._waiting[endpoint.address].append(transfer)
            self._run(endpoint)

    def cancel(self, transfer: Transfer) -> bool:
        """End a waiting transfer with ECANCELED, what it has so far stays; False when it waits no more."""
        with self.lock:
            waiting = self._waiting[transfer.endpoint]
            if transfer.error is not None or transfer not in waiting:
                return False
            waiting.remove(transfer)
            self._end(transfer, errno.ECANCELED)
            return True

    def control(self, kind: int, request: int, value: int, index: int, data: bytes | int) -> bytes:
        """A control request: `data` is what is written, or how many bytes are wanted. Stalled, or OSError."""
        with self.lock:
            self.check()
            if isinstance(data, int):
                return self.answer(kind, request, value, index, b"")[:data]
            if (kind, request) == (0x21, 9):  # HID: SET_REPORT
                self.heard(0, data)
            elif (kind, request) != (0x21, 10):  # HID: SET_IDLE
                self.answer(kind, request, value, index, data)
            return b""

    # What the firmware does

    def send(self, data: bytes, endpoint: int | None = None, *, ended: bool = True) -> None:
        """Queue one IN transfer. `ended` False: the firmware forgets the ZLP after a multiple."""
        with self.lock:
            if self.gone:
                return
            found = self.first_in() if endpoint is None else self.find(endpoint)[1]
            packets, size = self._packets[found.address], found.packet
            if len(packets) * size > IN_LIMIT:
                self.dropped += 1
                return
            packets.extend(data[start : start + size] for start in range(0, len(data), size))
            if not data or (ended and found.kind == "bulk" and len(data) % size == 0):
                packets.append(b"")
            self._run(found)

    def halt(self, endpoint: int) -> None:
        """Stall an endpoint until the host clears the halt."""
        with self.lock:
            self.halted.add(endpoint)
            while self._waiting[endpoint]:
                self._end(self._waiting[endpoint].popleft(), errno.EPIPE)

    def babble(self) -> None:
        """Send a packet that is longer than any that can be asked for."""
        with self.lock:
            found = self.first_in()
            self._packets[found.address].append(bytes(IN_LIMIT + 1))
            self._run(found)

    def accept(self, room: int | None) -> None:
        """Take so many OUT bytes more (None: all that come), then answer NAK."""
        with self.lock:
            self.room = room
            for address in list(self._waiting):
                self._run(self.find(address)[1])

    @property
    def waiting(self) -> int:
        """Transfers that have not ended."""
        with self.lock:
            return sum(len(transfers) for transfers in self._waiting.values())

    # Inside

    def _check_interface(self, number: int) -> d.Configuration:
        self.check()
        active = self.active
        if active is None or number not in active.numbers:
            raise refused(errno.ENOENT)
        return active

    def _end(self, transfer: Transfer, error: int) -> None:
        transfer.error = error
        if transfer.endpoint & d.IN:
            transfer.actual = len(transfer.data)
        transfer.finished(transfer)

    def _end_all(self, error: int) -> None:
        for transfers in self._waiting.values():
            while transfers:
                self._end(transfers.popleft(), error)

    def _run(self, endpoint: d.Endpoint) -> None:
        if endpoint.is_in:
            self._run_in(endpoint)
        else:
            self._run_out(endpoint)

    def _run_in(self, endpoint: d.Endpoint) -> None:
        waiting, packets = self._waiting[endpoint.address], self._packets[endpoint.address]
        while waiting and packets:
            transfer, packet = waiting[0], packets.popleft()
            if len(packet) > transfer.size - len(transfer.data):
                waiting.popleft()  # the packet is lost, as on a real wire
                self._end(transfer, errno.EOVERFLOW)
                continue
            transfer.data += packet
            if len(packet) < endpoint.packet or len(transfer.data) == transfer.size:
                waiting.popleft()
                self._end(transfer, 0)

    def _run_out(self, endpoint: d.Endpoint) -> None:
        waiting, unended = self._waiting[endpoint.address], self._unended[endpoint.address]
        while waiting:
            transfer = waiting[0]
            packet = bytes(transfer.data[transfer.actual : transfer.actual + endpoint.packet])
            if self.room is not None:
                if self.room < max(len(packet), 1):
                    return
                self.room -= len(packet)
            unended += packet
            transfer.actual += len(packet)
            last = transfer.actual == len(transfer.data)
            if last:
                waiting.popleft()
                self._end(transfer, 0)
            # Firmware knows how long a report is; a bulk transfer ends with a short packet and nothing else.
            if len(packet) < endpoint.packet or (last and endpoint.kind == "interrupt"):
                whole = bytes(unended)
                unended.clear()
                self.heard(endpoint.address, whole)
