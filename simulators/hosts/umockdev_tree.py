"""The files that umockdev's preload shows a program in the place of /sys and /dev, and its hotplug messages.

The preload puts `$UMOCKDEV_DIR` before every path below /sys, /dev and /run/udev/data.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import pack

from simulators.hosts.usb_device import UsbDevice

COMMON = (
    "sys/bus/usb/devices",
    "sys/bus/usb-serial/devices",
    "sys/class/tty",
    "sys/devices",
    "dev/.node",
    "dev/bus/usb",
    "dev/serial/by-id",
    "ioctl/dev/bus/usb",
    "run/udev/data",
)
MADE = ".made"
USB_MAJOR, TTY_USB_MAJOR = 189, 188
MONITOR_MAGIC = 0xFEEDCAFE
MONITOR_HEADER = 40


class Files:
    """Files below `root` that are taken away again, with the directories that were made for them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: list[Path] = []

    def folder(self, name: str) -> Path:
        """A directory; it, and those above it that were missing, go with the rest, if they are empty then."""
        path = self.root / name
        missing = [parent for parent in (path, *path.parents) if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            self._made.append(parent)
        return path

    def write(self, name: str, content: str | bytes) -> None:
        path = self.place(name)
        path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())

    def link(self, name: str, target: str) -> None:
        """A link as it stands; relative targets are the reader's."""
        self.place(name).symlink_to(target)

    def link_to(self, name: str, other: str) -> None:
        """A relative link to another file of the tree."""
        path = self.place(name)
        path.symlink_to(os.path.relpath(self.root / other, path.parent))

    def place(self, name: str) -> Path:
        """Where somebody else is about to make a file of ours. A stale one is taken away."""
        path = self.folder(str(Path(name).parent)) / Path(name).name
        path.unlink(missing_ok=True)
        self._made.append(path)
        return path

    def keep(self, *names: str) -> None:
        """Directories that are ours to take away even when another host made them."""
        for name in names:
            path = self.folder(name)
            below = [p for p in (*reversed(path.parents), path) if p != self.root and self.root in p.parents]
            self._made += below

    def remove(self, spared: Iterable[Path] = ()) -> None:
        for path in reversed(self._made):
            if path in spared:
                continue
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
        self._made.clear()


def prepare(root: Path) -> Files:
    """What all hosts of a directory share. A directory made for them is marked to go with the last."""
    if not root.exists():
        root.mkdir(parents=True)
        (root / MADE).touch()
    files = Files(root)
    files.keep(*COMMON)
    return files


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """One host of a directory at a time: who is the last is known only when the others have left whole."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def leave(root: Path, files: Files) -> None:
    """Undo `prepare`; the last host takes away what programs left, and the directory itself."""
    if list(root.glob("dev/.bus*")):
        common = [root / name for name in COMMON]
        files.remove({path for name in common for path in (name, *name.parents)})
    else:
        for listener in root.glob("event[0-9]*"):
            listener.unlink(missing_ok=True)
        files.remove()
        with suppress(OSError):
            (root / MADE).unlink()
            root.rmdir()


def of_bus(bus: int) -> tuple[str, ...]:
    """The directories that the devices of a bus share."""
    return f"sys/devices/usb{bus}", f"dev/bus/usb/{bus:03d}", f"ioctl/dev/bus/usb/{bus:03d}"


def clear(root: Path, bus: int) -> None:
    """Take away what a host that was killed left of this bus; serial ports whose device is gone go too."""
    for folder in of_bus(bus):
        shutil.rmtree(root / folder, ignore_errors=True)
    for path in [*root.glob(f"sys/bus/usb/devices/{bus}-*"), *root.glob(f"dev/.node/bus_usb_{bus:03d}_*")]:
        path.unlink()
    for pattern in ("sys/class/tty/*", "dev/serial/by-id/*"):
        for path in root.glob(pattern):
            if not path.exists():
                path.unlink()


def device_name(device: UsbDevice) -> str:
    """As the kernel writes bus and port."""
    return f"{device.bus}-{device.port}"


def device_path(device: UsbDevice) -> str:
    return f"devices/usb{device.bus}/{device_name(device)}"


def node_path(device: UsbDevice) -> str:
    """The node below /dev."""
    return f"bus/usb/{device.bus:03d}/{device.address:03d}"


def add_device(files: Files, device: UsbDevice) -> None:
    """What sysfs says about a USB device (Documentation/ABI/testing/sysfs-bus-usb)."""
    home, name = f"sys/{device_path(device)}", device_name(device)
    blob = device.descriptor() + b"".join(c.encode() for c in device.configurations)
    active = device.active
    texts = {
        "busnum": device.bus,
        "devnum": device.address,
        "devpath": device.port,
        "speed": device.speed,
        "bConfigurationValue": device.configuration,
        "bNumConfigurations": len(device.configurations),
        "bNumInterfaces": f"{len(active.numbers) if active else 0:2d}",
        "idVendor": f"{device.vendor_id:04x}",
        "idProduct": f"{device.product_id:04x}",
        "uevent": "\n".join(f"{key}={value}" for key, value in properties(device).items()),
    }
    strings = zip(("manufacturer", "product", "serial"), device.strings, strict=True)
    if device.languages:
        texts |= {key: text for key, text in strings if text is not None}
    for key, value in texts.items():
        files.write(f"{home}/{key}", str(value))
    files.write(f"{home}/descriptors", blob)
    files.link_to(f"{home}/subsystem", "sys/bus/usb")
    for interface in active.interfaces if active else ():
        if interface.alternate == 0:
            below = f"{home}/{name}:{device.configuration}.{interface.number}"
            files.write(f"{below}/bInterfaceNumber", f"{interface.number:02x}")
            files.write(f"{below}/bInterfaceClass", f"{interface.klass:02x}")
            files.link_to(f"{below}/subsystem", "sys/bus/usb")
    files.link_to(f"sys/bus/usb/devices/{name}", home)
    major, minor = USB_MAJOR, _minor(device)
    files.link(f"dev/.node/{node_path(device).replace('/', '_')}", f"{major}:{minor}")


def add_tty(files: Files, device: UsbDevice, name: str, pty: str) -> None:
    """A serial adapter's port: /dev/`name` is the pseudo-terminal, and its stable name leads there."""
    interface = f"{device_name(device)}:{device.configuration}.0"
    port = f"sys/{device_path(device)}/{interface}/{name}"
    minor = name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") or "0"
    files.write(f"{port}/tty/{name}/uevent", f"MAJOR={TTY_USB_MAJOR}\nMINOR={minor}\nDEVNAME={name}")
    files.link_to(f"{port}/tty/{name}/device", port)
    files.link_to(f"{port}/tty/{name}/subsystem", "sys/class/tty")
    files.link_to(f"{port}/subsystem", "sys/bus/usb-serial")
    files.link_to(f"sys/class/tty/{name}", f"{port}/tty/{name}")
    files.link(f"dev/{name}", pty)
    files.link_to(f"dev/serial/by-id/{stable_name(device)}", f"dev/{name}")


def stable_name(device: UsbDevice) -> str:
    """As udev names the link in /dev/serial/by-id."""
    words = "_".join(text.replace(" ", "_") for text in device.strings if text)
    return f"usb-{words}-if00-port0"


def properties(device: UsbDevice) -> dict[str, object]:
    return {
        "DEVTYPE": "usb_device",
        "DRIVER": "usb",
        "PRODUCT": f"{device.vendor_id:x}/{device.product_id:x}/100",
        "BUSNUM": f"{device.bus:03d}",
        "DEVNUM": f"{device.address:03d}",
        "MAJOR": USB_MAJOR,
        "MINOR": _minor(device),
        "DEVNAME": f"/dev/{node_path(device)}",
    }


def announce(root: Path, action: str, device: UsbDevice, number: int) -> None:
    """Tell every program that watches: one libudev monitor message to each of the preload's sockets."""
    devpath = f"/{device_path(device)}"
    facts = {"ACTION": action, "DEVPATH": devpath, "SUBSYSTEM": "usb", "SEQNUM": number} | properties(device)
    body = b"".join(f"{key}={value}\0".encode() for key, value in facts.items())
    hashes = (murmur2(b"usb"), murmur2(b"usb_device"))
    head = b"libudev\0" + pack(">I", MONITOR_MAGIC) + pack("=III", MONITOR_HEADER, MONITOR_HEADER, len(body))
    head += pack(">II", *hashes) + pack("=II", 0, 0)
    for listener in root.glob("event[0-9]*"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_RAW | socket.SOCK_NONBLOCK) as sender:
            try:
                sender.sendto(head + body, str(listener))
            except ConnectionRefusedError:
                listener.unlink(missing_ok=True)  # its program has ended
            except OSError:
                continue


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, seed 0 (A. Appleby, public domain), by which libudev filters."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    value = len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * factor & mask
        value = (value * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if data[whole:]:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def _minor(device: UsbDevice) -> int:
    return (device.bus - 1) * 128 + device.address - 1
