"""Imports go in one direction: each part of the project only depends on the parts below it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The interface between devices and their callers, which belongs to neither.
DEVICE_PROTOCOL = ("openmxu.device", "openmxu.disassembler", "openmxu.driver.transport")

SIMULATORS = tuple(
    f"openmxu.sim.{path.stem}"
    for path in (ROOT / "sim").iterdir()
    if path.stem not in ("__init__", "cycle_model", "memory_rate")
)
"""All of the simulators but the cycle model, by which the compiler chooses the fastest program, and the rates of its
memories."""

MAY_IMPORT = {
    "openmxu/arch": ("openmxu.arch",),
    "rtl": ("openmxu.arch", "openmxu.rtl"),
    "sim": ("openmxu.arch", "openmxu.rtl", "openmxu.sim", *DEVICE_PROTOCOL),
    "openmxu": ("openmxu",),
    "tb": ("openmxu", "tb"),
    "examples": ("examples", "openmxu"),
    "scripts": ("openmxu", "examples", "tb", "scripts"),
}
"""For each folder, the packages of the project that its modules may import."""

MAY_NOT_IMPORT = {
    "rtl/shell": ("openmxu.rtl.axi", "openmxu.rtl.serial"),
    "rtl/serial": ("openmxu.rtl.axi",),
    "openmxu/compiler": ("openmxu.rtl", *SIMULATORS, "openmxu.cli"),
    "openmxu/program.py": ("openmxu.rtl", "openmxu.sim", "openmxu.cli"),
    "openmxu/device.py": ("openmxu.rtl", "openmxu.sim", "openmxu.compiler", "openmxu.cli"),
    "openmxu/disassembler.py": ("openmxu.rtl", "openmxu.sim", "openmxu.compiler", "openmxu.cli"),
}
"""Compiler and programs use devices through their interface only, and the interface depends on no implementation. Each
shell depends on no bus but its own."""

OURS = {"openmxu", "rtl", "sim", "tb", "examples", "scripts", "tests"}

HARDWARE_LIBRARIES = {"amaranth", "numpy", "openmxu"}
"""numpy is for the models of the hardware."""


def sources(path: str) -> list[Path]:
    """The modules of a folder, except those in folders with a separate entry."""
    if path.endswith(".py"):
        return [ROOT / path]
    inner = [ROOT / other for other in MAY_IMPORT if other.startswith(f"{path}/")]
    found = (ROOT / path).rglob("*.py")
    return sorted(source for source in found if not any(source.is_relative_to(folder) for folder in inner))


def imports(text: str) -> Iterator[str]:
    """The modules that a source file imports, at any level."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # `from openmxu import sim` also imports a module.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of the packages or within one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_direction(folder):
    modules = sources(folder)
    assert modules
    for source in modules:
        ours = [module for module in imports(source.read_text()) if module.partition(".")[0] in OURS]
        wrong = [module for module in ours if not is_within(module, MAY_IMPORT[folder])]
        assert wrong == [], f"{source.relative_to(ROOT)} imports a module that is not below it"


@pytest.mark.parametrize("path", MAY_NOT_IMPORT)
def test_parts_are_independent(path):
    modules = sources(path)
    assert modules
    for source in modules:
        wrong = [module for module in imports(source.read_text()) if is_within(module, MAY_NOT_IMPORT[path])]
        assert wrong == [], f"{source.relative_to(ROOT)} imports an implementation"


def test_hardware_needs_few_libraries():
    for source in sources("rtl"):
        roots = {module.partition(".")[0] for module in imports(source.read_text())}
        assert roots - HARDWARE_LIBRARIES <= sys.stdlib_module_names, source.relative_to(ROOT)


def test_imports_are_found():
    text = "import a.b\nfrom c import d\ndef f():\n    from e.f import g as h\n"
    assert set(imports(text)) == {"a.b", "c.d", "e.f.g"}
    assert is_within("openmxu.sim.verilated", ("openmxu.sim",))
    assert not is_within("openmxu.simulation", ("openmxu.sim",))
