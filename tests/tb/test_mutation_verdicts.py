"""The mutation bench reads verdicts only for the faults that they are about, and finds its files on any machine."""

import pytest

from scripts.fpga.errors import FlowError
from scripts.mutation.bench import Verdict
from scripts.mutation.netlist import FLAT, NETLIST, Files, Mutant
from scripts.mutation.verdicts import append_verdict, read_verdicts, without


def fault(number, mode):
    return Mutant(number, "core", mode, "$and", "$1", "A", number, None, "", ("rtl/core.py:1",), "")


FAULTS = [fault(3, "inv"), fault(5, "const0"), fault(8, "const1")]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "verdicts.tsv"
    for mutant, check in zip(FAULTS, ("layers", None, "slots"), strict=True):
        append_verdict(path, Verdict(mutant, check, "a message"))
    return path


def test_a_survivor_and_the_checks_of_others_come_back(path):
    verdicts = read_verdicts(path, FAULTS)
    assert [(verdict.mutant, verdict.check) for verdict in verdicts] == list(
        zip(FAULTS, ("layers", None, "slots"), strict=True)
    )


def test_faults_without_a_verdict_are_left(path):
    assert without([*FAULTS, fault(9, "inv")], read_verdicts(path, FAULTS)) == [fault(9, "inv")]


@pytest.mark.parametrize("others", [FAULTS[:2], [*FAULTS[:2], fault(8, "inv")]])
def test_verdicts_on_other_faults_are_refused(path, others):
    with pytest.raises(FlowError, match="other faults"):
        read_verdicts(path, others)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FlowError, match="no verdicts"):
        read_verdicts(tmp_path / "verdicts.tsv", FAULTS)


def test_files_are_written_where_they_are_not(tmp_path):
    (tmp_path / FLAT).write_text("flat")
    (tmp_path / NETLIST).write_text("netlist")
    files = Files.of(tmp_path)
    assert files.folder == tmp_path
    (tmp_path / NETLIST).write_text("of another run")
    folder = files.folder
    assert folder != tmp_path
    assert [(folder / name).read_text() for name in (FLAT, NETLIST)] == ["flat", "netlist"]
    assert files.folder == folder
