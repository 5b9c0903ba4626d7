"""Captures of any transport as pcapng files: recording one, reading one. Wireshark opens them too."""

from firmware_bridge.capture.pcapng import CaptureError
from firmware_bridge.capture.reader import Record, read_capture
from firmware_bridge.capture.recorder import Recorder, recorded

__all__ = ["CaptureError", "Record", "Recorder", "read_capture", "recorded"]
