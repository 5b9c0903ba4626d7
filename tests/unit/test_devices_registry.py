from importlib.metadata import EntryPoint

import pytest

from devices import registry
from devices.base import DriverSpec

GAT = "devices.verifiers.gat:SPEC"


def _point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


def test_every_driver_of_the_house_loads_under_its_name() -> None:
    assert {"angel-eye", "managed-shoe", "managed-shuffler"} <= set(registry.names())
    for name in registry.names():
        spec = registry.load(name)
        assert isinstance(spec, DriverSpec)
        assert spec.name == name


def test_the_angel_eye_serves_baccarat_only() -> None:
    spec = registry.load("angel-eye")
    assert (spec.role, spec.games, spec.polled, spec.baud) == ("shoe", {"baccarat"}, False, 4800)


def test_managed_drivers_say_what_reads_and_what_moves_cards() -> None:
    spec = registry.load("managed-shuffler")
    assert {c.name for c in spec.commands if c.reads} == {"status", "settings", "report"}
    assert {c.name for c in spec.commands if c.moves_cards} == {"start", "release"}
    assert {c.name for c in registry.load("managed-shoe").commands if c.reads} == {"status"}


def test_an_unknown_name_is_answered_with_the_nearest_right_one() -> None:
    with pytest.raises(registry.UnknownDriver, match="did you mean 'angel-eye'"):
        registry.load("angle-eye")


def test_a_name_far_from_any_lists_what_there_is() -> None:
    with pytest.raises(registry.UnknownDriver, match=r"known drivers: .*managed-shuffler") as error:
        registry.load("zzz")
    assert "did you mean" not in str(error.value)


def test_two_packages_with_one_name_are_an_error_that_names_both_and_stop_no_other_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [_point("x", "one.mod:SPEC"), _point("x", "other.mod:SPEC"), _point("gat", GAT)]
    monkeypatch.setattr(registry, "_installed", lambda: registry.index(points))
    with pytest.raises(registry.DuplicateDriver, match=r"one\.mod:SPEC and other\.mod:SPEC"):
        registry.load("x")
    assert registry.names() == ("gat", "x")
    assert registry.load("gat").role == "verifier"


def test_one_package_found_twice_on_the_path_is_no_duplicate() -> None:
    twice = [_point("x", "one.mod:SPEC"), _point("x", "one.mod:SPEC")]
    assert registry.index(twice) == {"x": twice[:1]}


@pytest.mark.parametrize(
    "value", ["no.such.module:SPEC", "devices.registry:NOTHING", "devices.registry:GROUP"]
)
def test_an_entry_point_that_leads_nowhere_is_a_broken_driver(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_installed", lambda: registry.index([_point("x", value)]))
    with pytest.raises(registry.BrokenDriver, match="'x'"):
        registry.load("x")


def test_drivers_are_loaded_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    points = registry.index([_point("good", "devices.shoes.managed:SPEC"), _point("bad", "no.such:SPEC")])
    monkeypatch.setattr(registry, "_installed", lambda: points)
    assert registry.names() == ("bad", "good")
