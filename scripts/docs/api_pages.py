"""Pages of the site for the Python packages, made from their docstrings by Sphinx's autodoc."""

from __future__ import annotations

import importlib
import inspect

__all__ = ["api_pages"]

PACKAGES = {
    "openmxu": ("openmxu",),
    "openmxu.program": ("openmxu.program", "openmxu.session", "openmxu.layer"),
    "openmxu.assembler": ("openmxu.assembler", "openmxu.disassembler", "openmxu.program_file"),
    "openmxu.arch": ("openmxu.arch", "openmxu.arch.events", "openmxu.arch.profile", "openmxu.arch.numerics"),
    "openmxu.compiler": ("openmxu.compiler",),
    "openmxu.quantizer": ("openmxu.quantizer",),
    "openmxu.comparison": ("openmxu.comparison",),
    "openmxu.profiling": ("openmxu.profiling",),
    "openmxu.reporting": ("openmxu.reporting",),
    "openmxu.device": ("openmxu.device", "openmxu.devices"),
    "openmxu.driver": ("openmxu.driver",),
    "openmxu.sim": (
        *("openmxu.sim.interpreter", "openmxu.sim.verilated", "openmxu.sim.axi", "openmxu.sim.serial"),
        *("openmxu.sim.cycle_model", "openmxu.sim.memory_rate"),
    ),
    "openmxu.models": ("openmxu.models",),
    "openmxu.rtl": (
        *("openmxu.rtl.core", "openmxu.rtl.common.interfaces", "openmxu.rtl.axi.shell", "openmxu.rtl.serial.shell"),
        *("openmxu.rtl.dispatch.dispatcher", "openmxu.rtl.buffer.unified_buffer", "openmxu.rtl.weights.weight_fetcher"),
        *("openmxu.rtl.weights.weight_fifo", "openmxu.rtl.matrix.systolic_data_setup"),
        *("openmxu.rtl.matrix.systolic_array", "openmxu.rtl.matrix.processing_element"),
        *("openmxu.rtl.matrix.accumulators", "openmxu.rtl.activation.activation_unit"),
        "openmxu.rtl.activation.requantizer",
    ),
}
"""For each page its modules. A name that a package takes from a module is described on the first page that has it."""


def api_pages() -> dict[str, str]:
    """The Markdown of each page by its name; ``index`` lists the others."""
    described: dict[int, str] = {}
    pages = {name: _page(name, modules, described) for name, modules in PACKAGES.items()}
    intro = "What programs import, from the docstrings of the sources. Names that are not here may change at any time."
    contents = ["```{toctree}", ":maxdepth: 1", "", *pages, "```"]
    return pages | {"index": "\n".join(["# The Python API", "", intro, "", *contents, ""])}


def _page(name: str, modules: tuple[str, ...], described: dict[int, str]) -> str:
    parts = [f"# {name}"]
    for path in modules:
        module = importlib.import_module(path)
        if len(modules) > 1 and path != name:
            parts.append(f"## {path}")
        parts.append(f"```{{eval-rst}}\n.. automodule:: {path}\n   :no-members:\n```")
        elsewhere = []
        for member in module.__all__:
            value = getattr(module, member)
            kind = _kind(value)
            place = described.setdefault(id(value), name) if kind != "data" else name
            if place != name:
                elsewhere.append(f"[{member}]({place}.md)")
            elif kind == "data" or f"{path}.{member}" not in described.values():
                options = "   :no-value:\n" if kind == "data" else ""
                parts.append(f"```{{eval-rst}}\n.. auto{kind}:: {path}.{member}\n{options}```")
        if elsewhere:
            parts.append("Described elsewhere: " + ", ".join(elsewhere) + ".")
    return "\n\n".join(parts) + "\n"


def _kind(value: object) -> str:
    """Autodoc's directive for an object."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"
