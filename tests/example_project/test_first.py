import serial


def test_a_card_is_told(cutcard_bee_tek):
    shoe = cutcard_bee_tek
    with serial.Serial(shoe.path, 9600, timeout=2) as port:
        card = shoe.act(lambda machine: machine.draw())
        assert port.read_until(b">").decode().endswith(f"<Card:{card.face}>")
