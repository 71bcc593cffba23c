"""Runs cocotb tests on a rack and reports failures."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

from cocotb_tools.runner import Verilator

from openmxu.arch.config import Config
from tb import CONFIG_VARIABLE, SEED_VARIABLE
from tb.build import TOP, built_rack, tool_environment

__all__ = ["TestbenchError", "run"]

_LOG_LINES = 60


class TestbenchError(AssertionError):
    """A cocotb test failed, or a module of tests ran none."""

    __test__ = False  # keeps pytest from collecting it as a test class


def run(kind: str, config: Config, modules: Sequence[str], directory: Path) -> int:
    """Run the cocotb tests of ``modules`` on a rack.

    Parameters
    ----------
    kind
        The rack, a key of :data:`tb.rack.RACKS`.
    config
        Its configuration.
    modules
        Modules with cocotb tests, relative to ``tb``.
    directory
        Folder for results and log.

    Returns
    -------
    The number of tests that passed.

    Raises
    ------
    TestbenchError
        A test failed, a module has no tests, or the simulation ended early.
    """
    build = built_rack(kind, config)
    results, log = directory / "results.xml", directory / "simulation.log"
    names = [f"tb.{module}" for module in modules]
    with tool_environment():
        try:
            Verilator().test(
                hdl_toplevel=TOP,
                hdl_toplevel_lang="verilog",
                test_module=names,
                build_dir=build,
                test_dir=directory,
                results_xml=str(results),
                seed=os.environ.get(SEED_VARIABLE, "1"),
                extra_env={
                    CONFIG_VARIABLE: json.dumps(config.as_dict()),
                    "COCOTB_LOG_LEVEL": "INFO",
                    # pytest shows the values in failed assertions of these files; rewriting more files takes seconds.
                    "COCOTB_REWRITE_ASSERTION_FILES": "tb/*.py",
                    "PYTHONWARNINGS": "error",
                },
                log_file=log,
            )
        except (Exception, SystemExit) as error:
            if not results.exists():
                raise TestbenchError(f"the simulation ended early: {error}\n{_tail(log)}") from error
    return _check(results, log, names)


def _check(results: Path, log: Path, modules: Sequence[str]) -> int:
    cases = list(ElementTree.parse(results).iter("testcase"))
    bad = [case for case in cases if any(child.tag in ("failure", "error", "skipped") for child in case)]
    if bad:
        names = ", ".join(f"{case.get('classname')}.{case.get('name')}" for case in bad)
        raise TestbenchError(f"{len(bad)} of {len(cases)} cocotb tests failed: {names}\n{_tail(log)}")
    idle = set(modules) - {case.get("classname") for case in cases}
    if idle:
        raise TestbenchError(f"no cocotb test ran in {', '.join(sorted(idle))}\n{_tail(log)}")
    return len(cases)


def _tail(log: Path) -> str:
    if not log.exists():
        return ""
    text = re.sub("^ {30,}", "  ", log.read_text(errors="replace"), flags=re.MULTILINE)
    start = text.find("Traceback")
    return text[start:][:6000] if start >= 0 else "\n".join(text.splitlines()[-_LOG_LINES:])
