"""The display against a simulated shoe on a real pseudo-terminal."""

from contextlib import closing

from pit_display import PitDisplay


def draw(shoe, count):
    """Pull cards out of the shoe; their faces."""
    return [shoe.act(lambda machine: machine.draw().face) for _ in range(count)]


def test_every_card_is_shown(cutcard_bee_tek):
    with closing(PitDisplay(cutcard_bee_tek.path)) as display:
        drawn = draw(cutcard_bee_tek, 5)
        display.wait_for(5)
    assert display.cards == drawn


def test_a_card_that_is_not_read_is_counted(cutcard_device):
    shoe = cutcard_device("bee-tek", seed=7, faults=["misread@2"])
    with closing(PitDisplay(shoe.path)) as display:
        first, second, third = draw(shoe, 3)
        display.wait_for(3)
    assert (display.cards, display.unread) == ([first, third], 1)
    assert second not in display.cards
    assert shoe.struck == {"misread": 1}


def test_a_pulled_cable_is_noticed_and_the_shoe_is_found_again(cutcard_bee_tek):
    shoe = cutcard_bee_tek
    with closing(PitDisplay(shoe.path)) as display:
        shoe.unplug()
        display.wait_for(1)
    assert display.lost
    shoe.replug()
    with closing(PitDisplay(shoe.path)) as display:
        drawn = draw(shoe, 1)
        display.wait_for(1)
    assert display.cards == drawn
