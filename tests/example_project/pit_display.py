"""What is under test here: a pit display that reads a Bee-Tek shoe over a serial port by itself."""

import re

import serial

CARD = re.compile(rb"\[Game\]<Card:([2-9TJQKA][CDHS])>|\[Game\]<(Game)>")


class PitDisplay:
    """Counts cards; `unread` are those whose face the shoe did not read, `lost` that the cable was pulled."""

    def __init__(self, port):
        self._port = serial.Serial(port, 9600, timeout=2)
        self._text = b""
        self.cards = []
        self.unread = 0
        self.lost = False

    def wait_for(self, count):
        """Read until so many cards have come, or the port is gone, or for two seconds."""
        while len(self.cards) + self.unread < count:
            try:
                data = self._port.read(max(1, self._port.in_waiting))
            except (serial.SerialException, OSError):
                self.lost = True
                return
            if not data:
                return
            self._take(self._text + data)

    def _take(self, text):
        end = 0
        for found in CARD.finditer(text):
            end = found.end()
            if found[1]:
                self.cards.append(found[1].decode())
            else:
                self.unread += 1
        self._text = text[end:]

    def close(self):
        self._port.close()
