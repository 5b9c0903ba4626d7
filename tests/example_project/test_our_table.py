"""Our own table.toml: with the real daemon, and under a virtual clock where a shoe takes no time."""


def test_a_pulled_cable_is_an_alarm_and_no_card_is_lost(cutcard_table):
    table = cutcard_table("our_table.toml", seed=5)
    table.play(until=lambda: table.rounds == 1)
    table.unplug("shoe")
    table.wait(until=lambda: table.facts("link_down"))
    table.replug("shoe")
    table.play(until=lambda: table.rounds == 2)
    assert [alarm["code"] for alarm in table.get("alarms")] == ["device_down"]
    assert table.latched == []
    drawn = table.act(lambda felt: felt.referee.cards)
    assert len(table.facts("card_drawn")) == drawn


def test_two_shoes_are_dealt_and_no_rule_is_broken(cutcard_virtual_table):
    table = cutcard_virtual_table("our_table.toml", seed=5, shoes=2)
    table.play()
    assert (table.violations, table.latched) == ([], [])
    assert [fact["batch"] for fact in table.facts("load_shoe")] == ["A", "B"]
    assert table.get("status")["phase"] == "closed"
