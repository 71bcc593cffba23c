"""The bench that compares networks on cores with less and more of a resource keeps what is done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import openmxu
import openmxu.sim.cycle_model
from scripts.performance import resources

DEPTHS = resources.RESOURCES["command_queue_depth"]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The queue depths for which cycles were computed: with more than 4 a network is slower."""
    depths: list[int] = []

    def predicted_cycles(batch: int, task: tuple[str, openmxu.Config]) -> list[int]:
        depths.append(task[1].command_queue_depth)
        return [1000, 2000 + 30 * (task[1].command_queue_depth > 4)]

    monkeypatch.setattr(resources, "predicted_cycles", predicted_cycles)
    return depths


ONE = "--size 8 --network mnist --resource command_queue_depth"


def run(monkeypatch: pytest.MonkeyPatch, kept: Path, options: str = ONE) -> int:
    monkeypatch.setattr("sys.argv", ["resources", *options.split(), "--workers", "1", "--kept", str(kept)])
    return resources.main()


def test_what_is_done_is_kept(
    monkeypatch: pytest.MonkeyPatch, computed: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "kept") == 1
    first = capsys.readouterr().out
    assert "4: 1,000 / 2,000, 8: 1,000 / 2,030, 16: 1,000 / 2,030; 8 is 1.0% slower than 4" in first
    step = "S = 8, mnist, command_queue_depth 4 to 8: both latencies +1.00%, latency 4 +0.00%, latency 100 +1.50%"
    assert f"largest rise, both latencies: {step}\n" in first
    assert f"largest rise, latency 100: {step}\n" in first
    assert run(monkeypatch, tmp_path / "kept") == 1
    assert capsys.readouterr().out == first
    assert computed == [*DEPTHS]


def test_other_sources_begin_again(monkeypatch: pytest.MonkeyPatch, computed: list[int], tmp_path: Path) -> None:
    run(monkeypatch, tmp_path / "kept")
    monkeypatch.setattr(resources, "_SOURCES", resources._SOURCES[:1])
    run(monkeypatch, tmp_path / "kept")
    assert computed == [*DEPTHS, *DEPTHS]


def test_sources_have_all_hardware_that_the_cycle_model_imports() -> None:
    sources = [package.__name__ for package in resources._SOURCES]
    folder = Path(next(iter(openmxu.sim.cycle_model.__path__)))
    imported = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(r"^(?:from|import) (openmxu\.rtl(?:\.\w+)*)", path.read_text(), re.MULTILINE)
    }
    assert imported
    assert not [name for name in imported if not any(f"{name}.".startswith(f"{source}.") for source in sources)]


def test_table(monkeypatch: pytest.MonkeyPatch, computed: list[int], tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("Before.\n<!-- resources: begin -->\nold\n<!-- resources: end -->\nBehind.\n")
    for name, value in (("DOCUMENT", document), ("SIZES", (8,)), ("NETWORKS", ("mnist",))):
        monkeypatch.setattr(resources, name, value)
    assert run(monkeypatch, tmp_path / "kept", "--write") == 1
    written = document.read_text()
    assert "old" not in written
    assert written.startswith("Before.\n")
    assert written.endswith("Behind.\n")
    rows = [line for line in written.splitlines() if line.startswith("| `command_queue_depth`")]
    assert rows == [
        f"| `command_queue_depth` | {depth} | {cell} |"
        for depth, cell in ((2, "+0.00%"), (4, "default"), (8, "+1.00%"), (16, "+1.00%"))
    ]


def test_table_of_a_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path / "kept", f"--write {ONE}")
    assert "--write needs all results" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["--network nope", "--size 7", "--size 4"])
def test_unknown_networks_and_sizes_are_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, tmp_path / "kept", options)
    assert f"argument {options.split()[0]}: invalid choice: " in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
