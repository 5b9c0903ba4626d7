"""The pytest plugin `cutcard`: simulated devices and whole tables as fixtures (docs/simulators.md).

Every pytest run of this environment loads it: what is heavy is imported when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from simulators.rig.plugged import Plugged
    from simulators.rig.scenario import Scenario
    from simulators.rig.tables import LiveTable, Table, VirtualTable

SCENARIO = ".cutcard.yaml"
DeviceFactory = Callable[..., "Plugged"]
TableFactory = Callable[..., "LiveTable"]
VirtualTableFactory = Callable[..., "VirtualTable"]


@pytest.fixture
def cutcard_device(request: pytest.FixtureRequest) -> Iterator[DeviceFactory]:
    """Makes simulated devices: `cutcard_device("bee-tek", seed=1, faults=["misread@3"], listen="pty")`."""
    from simulators.hosts.umockdev_host import missing
    from simulators.rig.plugged import plugged

    with ExitStack() as stack:

        def make(name: str, **options: Any) -> Plugged:
            if options.get("listen") == "usb" and (lack := missing()) is not None:
                pytest.skip(lack)
            if options.get("script") is not None:
                options["script"] = request.path.parent / options["script"]
            return stack.enter_context(plugged(name, **options))

        yield make


def _named(device: str, listen: str = "pty") -> Callable[[DeviceFactory], Plugged]:
    def made(cutcard_device: DeviceFactory) -> Plugged:
        return cutcard_device(device, listen=listen)

    made.__doc__ = f"A simulated {device}: `cutcard_device({device!r}, listen={listen!r})`."
    return pytest.fixture(name=f"cutcard_{device.replace('-', '_')}")(made)


cutcard_angel_eye = _named("angel-eye")
cutcard_barcode_hid = _named("barcode-hid", "usb")
cutcard_bee_tek = _named("bee-tek")
cutcard_gat = _named("gat")
cutcard_hole_card_reader = _named("hole-card-reader")
cutcard_managed_continuous = _named("managed-continuous")
cutcard_managed_shoe = _named("managed-shoe")
cutcard_managed_shuffler = _named("managed-shuffler")
cutcard_managed_stack_shoe = _named("managed-stack-shoe")
cutcard_reshuffled = _named("reshuffled")


@pytest.fixture
def cutcard_table(request: pytest.FixtureRequest) -> Iterator[TableFactory]:
    """Makes tables with a daemon of their own: `cutcard_table("my-table.toml", seed=1, shoes=2)`."""
    from simulators.rig.tables import live_table

    with ExitStack() as stack:

        def make(table: Table = None, **options: Any) -> LiveTable:
            return stack.enter_context(live_table(table, home=request.path.parent, **options))

        yield make


@pytest.fixture
def cutcard_virtual_table(request: pytest.FixtureRequest) -> VirtualTableFactory:
    """Makes tables under a virtual clock: `cutcard_virtual_table("my-table.toml", seed=1, shoes=2)`."""
    from simulators.rig.tables import virtual_table

    def make(table: Table = None, **options: Any) -> VirtualTable:
        return virtual_table(table, home=request.path.parent, **options)

    return make


# Scenarios


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Each file `*.cutcard.yaml` is one test."""
    if file_path.name.endswith(SCENARIO):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    def collect(self) -> Iterator[ScenarioItem]:
        from simulators.rig.scenario import ScenarioError, load

        try:
            scenario = load(self.path)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from None
        yield ScenarioItem.from_parent(self, name=self.path.name.removesuffix(SCENARIO), scenario=scenario)


class ScenarioItem(pytest.Item):
    def __init__(self, *, scenario: Scenario, **options: Any) -> None:
        super().__init__(**options)
        self.scenario = scenario

    def runtest(self) -> None:
        from simulators.rig.staging import play

        if wrong := play(self.scenario):
            raise OtherwiseError("\n".join(wrong))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A report for people; of an error in our own code everything is shown."""
        if isinstance(excinfo.value, OtherwiseError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.scenario.about


class OtherwiseError(Exception):
    """A scenario came out otherwise than it expects; the text is the report."""
