"""Our own table.toml: with the real daemon, and under a virtual clock where a shoe takes no time."""


def test_a_pulled_cable_and_a_dead_daemon_cost_no_card(cutcard_table):
    table = cutcard_table("our_table.toml", seed=5)
    table.play(until=lambda: table.rounds == 1)
    assert table.tap("load_shuffler", batch="A")["refused"] == "shuffler_not_empty"
    table.unplug("shoe")
    table.wait(until=lambda: table.facts("link_down"))
    assert [alarm["code"] for alarm in table.get("alarms")] == ["device_down"]
    table.replug("shoe")
    table.play(until=lambda: table.rounds == 2)
    table.kill()
    table.start()
    table.play(until=lambda: table.rounds == 3)
    assert (table.latched, table.violations) == ([], [])
    assert len(table.facts("card_drawn")) == table.act(lambda felt: felt.referee.cards)


def test_two_shoes_are_dealt_and_no_rule_is_broken(cutcard_virtual_table):
    table = cutcard_virtual_table("our_table.toml", seed=5, shoes=2)
    table.fault("shoe", "misread@10")
    table.play()
    assert (table.violations, table.latched, table.struck) == ([], [], {"misread": 1})
    assert [fact["batch"] for fact in table.facts("load_shoe")] == ["A", "B"]
    assert table.get("status")["phase"] == "closed"
