"""R-62 to R-79: what shufflers and controllers must prove, keep secret and survive, in our own words."""

from __future__ import annotations

from controller.table.profiles.rule import COMMAND, Rule, Switch, Tag

V, P = Tag.VERBATIM, Tag.PARTIAL
T = "controller.table."
AUDIT = "not built yet: the audit of captured orders comes with the shuffler models"

PROOFS: tuple[Rule, ...] = (
    Rule(
        "R-62",
        V,
        "a shuffler's orders pass a chi-squared test at 95 %",
        clause="COMAR 36.05.02.17 F",
        left_out=AUDIT,
    ),
    Rule(
        "R-63",
        P,
        "nothing that tells of unseen cards leaves the machine",
        clause="COMAR 36.05.02.17 G",
        code=(T + "event_facts:record", T + "view:snapshot", "controller.seal:Sealer"),
        journal=("card_drawn",),
    ),
    Rule(
        "R-64",
        V,
        "a device, its firmware and each change of it are approved before use",
        clause="COMAR 36.05.02.17 E; 58 Pa. Code 461a.4",
        code=("firmware_bridge.identity:judge", T + "observe:_link_up", "controller.config_devices:_allowed"),
        journal=("link_up", "fault_latched: wrong_device"),
        left_out="in part: without a list in table.toml only a change of the device is found, not "
        "whether it was approved",
    ),
    Rule(
        "R-65",
        P,
        "random numbers and mechanical shuffles pass recognised tests at 99 %",
        clause="GLI-29 2.1; Greek technical rules, art. 23",
        left_out=AUDIT,
    ),
    Rule(
        "R-66",
        Tag.RECALLED,
        "the rest of GLI-29",
        clause="GLI-29",
        left_out="out of scope: the text was not at hand, and no figure is quoted as if it were",
    ),
    Rule(
        "R-67",
        V,
        "orders nobody can predict, even with all earlier ones",
        clause="UK casino equipment requirement 2.1",
        left_out="out of scope: Cutcard makes no random order; a shuffler's own generator is its maker's "
        "matter, and its orders are the audit's",
    ),
    Rule(
        "R-68",
        V,
        "a fault is told at once, survives a power cut and blocks until its cause is gone",
        clause="AGCO 11.1; 25 CFR 547.10",
        code=(
            T + "state:Fault",
            T + "judges:cause_gone",
            T + "rules:_blocked",
            T + "people:stage",
        ),
        journal=(
            "fault_latched",
            "fault_again",
            "acknowledge",
            "alarm_gone",
            "clear",
        ),
    ),
    Rule(
        "R-69",
        Tag.INFERRED,
        "after a stop the same round, batch and cutting-card flag come back, or the table stops safely",
        clause="GLI-11 and GLI-24, titles",
        code=(
            T + "observe:booted",
            T + "shuffler_events:reconcile",
            T + "shoe_events:reconcile",
            "controller.service:Service",
        ),
        journal=("booted", "checkpoint", "fault_latched: shoe_rebooted", "fault_latched: start_unknown"),
    ),
    Rule(
        "R-70",
        V,
        "each card read is compared with the set still expected",
        clause="US 9,162,138; US 8,490,973 (prior art)",
        code=(T + "shoe_events:_judge_card",),
        journal=("card_drawn", "fault_latched: too_many_copies"),
        left_out="in part: a fault blocks the next round; the shoe's feed is not held",
    ),
    Rule(
        "R-71",
        V,
        "shoe and shuffler lie in view of surveillance: times that can be laid beside a video",
        clause="WAC 230-15-280",
        code=("controller.record:Row",),
        journal=("link_up", "card_drawn"),
    ),
    Rule(
        "R-72",
        V,
        "what a device says of itself is necessary and never sufficient",
        clause="IOActive 2023; CVE-2025-34500 to 34503",
        code=("firmware_bridge.identity:Verdict", "firmware_bridge.identity:judge"),
        journal=("link_up",),
    ),
    Rule(
        "R-73",
        V,
        "serial GAT frames: length, check bytes, replies that fit the request",
        clause="GAT as in IOActive 2023",
        code=("firmware_bridge.framing.gat",),
        journal=(COMMAND,),
        left_out="in part: asked by `cutcard gat` alone, not by the daemon",
    ),
    Rule(
        "R-74",
        Tag.INFERRED,
        "the host counts for itself: drawn, burned and stub against what the shuffler claimed",
        clause="no clause",
        code=(
            T + "shoe_events:_judge_card",
            T + "rules:_after_collect",
            T + "closing:_judge_count",
            T + "continuous:_judge_inside",
        ),
        journal=(
            "collect_rack",
            "fault_latched: cards_missing",
            "fault_latched: too_many_cards",
            "fault_latched: returned_twice",
            "fault_latched: count_drift",
            "count_batch",
        ),
    ),
    Rule(
        "R-75",
        V,
        "what tells a bad shuffle without a wrong count: orders that repeat or run, too fast a cycle, a "
        "counter that stands still",
        clause="IOActive 2023",
        code=(
            T + "patterns:found",
            T + "shuffler_events:_too_short",
            T + "shuffler_events:_check_status",
        ),
        journal=(
            "card_drawn",
            "cycle_completed",
            "fault_latched: order_pattern",
            "fault_latched: cycle_too_short",
            "fault_latched: foreign_cycle",
        ),
    ),
    Rule(
        "R-76",
        V,
        "settings are read back before every cycle, and the cycle counter must advance",
        clause="IOActive 2023",
        code=(
            T + "shuffler_events:_check_settings",
            T + "shuffler_events:_check_status",
            T + "shuffler_events:_started",
        ),
        journal=(
            "shuffler_checked",
            "start_failed",
            "fault_latched: settings_mismatch",
            "fault_latched: foreign_cycle",
        ),
    ),
    Rule(
        "R-77",
        Tag.INFERRED,
        "only devices on the list move cards; firmware goes in by the command line, never by the daemon",
        clause="IOActive 2023, recommendations",
        code=(
            "controller.config_devices:_allowed",
            "firmware_bridge.identity:judge",
            "controller.cli.firmware:_forbidden",
        ),
        journal=("fault_latched: wrong_device",),
        left_out="in part: without a list only a change is found; the port's enclosure is the operator's "
        "work",
    ),
    Rule(
        "R-78",
        V,
        "real machines' figures: faults are routine",
        clause="IOActive 2023",
        code=("devices.importers.deckmate1",),
        journal=(COMMAND,),
        left_out="in part: no table has this machine on line; its log is read by `cutcard import`",
    ),
    Rule(
        "R-79",
        V,
        "casino nights: the burn after the bets; a cutting card is optional",
        clause="13:47-20.22(c), (d)1, (g)6",
        code=(
            T + "modes:MODES",
            T + "draft:GUARDS",
            T + "by_eye:_judge_burn",
            T + "by_hand:NIGHT_DISCARDS",
            T + "profiles:TableRules",
        ),
        journal=("bets_closed", "burn", "card_drawn", "reshuffle_by_hand"),
        switch=Switch("rules.burn", ("each-round", "each-load: once a shoe or deck")),
    ),
)
