"""A copy of a frozen value is what `dataclasses.replace` makes."""

from __future__ import annotations

import dataclasses

import pytest

from controller.table import state
from controller.table.profiles import BatchRules, TableRules
from firmware_bridge import link
from firmware_bridge.frozen import replace

RULES = TableRules("BJ-07", 7, 1, (BatchRules("A", "red"), BatchRules("B", "blue")))
VALUES = [
    state.initial(RULES),
    state.Batch("A", "red", {state.Place.RACK: 52}),
    state.Shuffler("A"),
    state.Shoe("A", drawn={"AS": 1}),
    state.Round(1, (1, 2)),
    state.Dealt("box 1", "AS", 7, seen=True),
    state.Device(n=3),
    state.Hand("box 1", 1),
    state.Cash(1, 5),
    state.Fault("F1", "jam", state.Blocks.NOW, "", 1, 1),
    link.Link(),
    link.Pending(link.Submit("C1", b"", 1, 0.5), 2, 1.0),
    link.Ended(1, True, 0.0),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_each_field_is_replaced_as_by_dataclasses_and_the_value_stays(value):
    before = dataclasses.astuple(value)
    for field in dataclasses.fields(value):
        copy = replace(value, **{field.name: "other"})
        assert copy == dataclasses.replace(value, **{field.name: "other"})
        assert copy != value
        assert repr(copy) == repr(dataclasses.replace(value, **{field.name: "other"}))
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(copy, field.name, "again")
    assert dataclasses.astuple(value) == before
    assert replace(value) == value


def test_a_field_that_there_is_none_of_is_an_error():
    with pytest.raises(TypeError, match="TableState has no phases"):
        replace(VALUES[0], phases=())


def test_a_value_compares_counts_as_a_key_and_has_its_fields_alone():
    one = link.Submit("C1", b"", 1, 0.5)
    assert one == link.Submit("C1", b"", 1, 0.5)
    assert one != dataclasses.replace(one, key=2)
    assert {one: 1}[link.Submit("C1", b"", 1, 0.5)] == 1
    with pytest.raises(AttributeError):
        one.other = 1
    with pytest.raises(ValueError, match="at least one attempt"):
        link.Submit("C1", b"", 1, 0.5, attempts=0)
