"""Serial adapters as the system lists them, for tests without any."""

from serial.tools import list_ports, list_ports_common

from firmware_bridge.transports import serial_find


def adapter(
    device,
    serial="FT0SHOE1",
    place="1-2",
    *,
    vid=0x0403,
    pid=0x6001,
    product="Shoe reader UART",
    interface=None,
):
    """What pyserial tells of one USB adapter."""
    info = list_ports_common.ListPortInfo(device)
    info.vid, info.pid, info.serial_number, info.location = vid, pid, serial, place
    info.product, info.interface = product, interface
    info.usb_interface_path = f"/sys/devices/usb1/{place.partition(':')[0]}/{place.partition(':')[0]}:1.0"
    if ":" in place:
        info.usb_interface_path = f"/sys/devices/usb1/{place.partition(':')[0]}/{place}"
    info.apply_usb_info()
    return info


def plug(monkeypatch, *infos):
    """These adapters are there, and no built-in port."""
    monkeypatch.setattr(list_ports, "comports", lambda: list(infos))
    monkeypatch.setattr(serial_find, "_built_in", list)
