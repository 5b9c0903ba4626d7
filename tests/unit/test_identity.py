"""Who is there: the list of approved devices, and verdicts that never promise too much (R-72)."""

import pytest

from firmware_bridge.identity import Identity, Verdict, judge

HASH = "ab" * 32
SHOE = Identity("Cutcard", "SIM-SHOE", "SH0001", "1.0.0", HASH)


def test_what_is_told_is_taken_as_text_and_nothing_is_made_up():
    told = {"vendor": "Cutcard", "product": 7, "serial": "SH0001", "hash": HASH.upper(), "boot": 3}
    assert Identity.told(told) == Identity("Cutcard", "", "SH0001", "", HASH)
    assert Identity.told({}) == Identity("", "", "", "", None)


@pytest.mark.parametrize(
    ("allowed", "verdict", "text"),
    [
        (None, Verdict.UNCHECKED, "no list of approved devices"),
        ([SHOE], Verdict.ATTESTED_UNTRUSTED, "it proves no more"),
        ([], Verdict.UNLISTED, "is not on the list"),
        ([Identity("Cutcard", "SIM-SHOE", "SH0002", "1.0.0")], Verdict.UNLISTED, "SH0001 with firmware"),
        (
            [Identity("Cutcard", "SIM-SHOE", "SH0001", "1.0.1", HASH)],
            Verdict.CHANGED,
            "firmware is 1.0.0, the list says 1.0.1",
        ),
        (
            [Identity("Cutcard", "SIM-SHOE", "SH0001", "1.0.0", "cd" * 32)],
            Verdict.CHANGED,
            f"hash is {HASH}, the list says {'cd' * 32}",
        ),
        ([Identity("Cutcard", "SIM-SHOE", "SH0001", "1.0.0")], Verdict.CHANGED, "the list says not told"),
        ([Identity("Evil", "SIM-SHOE", "SH0001", "1.0.0", HASH)], Verdict.CHANGED, "vendor is Cutcard"),
    ],
)
def test_verdicts(allowed, verdict, text):
    found, why = judge(SHOE, allowed)
    assert (found, text in why) == (verdict, True), why
    assert found.fits is (verdict in {Verdict.UNCHECKED, Verdict.ATTESTED_UNTRUSTED})


def test_the_nearest_entry_of_a_device_explains_the_difference():
    far = Identity("X", "Y", "SH0001", "0.9", None)
    near = Identity("Cutcard", "SIM-SHOE", "SH0001", "1.0.1", HASH)
    assert judge(SHOE, [far, near])[1].endswith("but firmware is 1.0.0, the list says 1.0.1")


def test_no_verdict_says_that_a_device_is_genuine():
    words = " ".join(judge(SHOE, allowed)[1] for allowed in (None, [SHOE], [])) + " ".join(Verdict)
    assert not {"verified", "genuine", "authentic"} & set(words.lower().replace(";", " ").split())
