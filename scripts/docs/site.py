"""Build the documentation site: the documents, tutorials and notebooks of docs/, the commands, and the Python API.

    python -m scripts.docs.site --output build/site

The pages open from disk and load nothing from the network. Every warning is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from sphinx.cmd.build import build_main

from scripts.docs.api_pages import api_pages
from scripts.docs.command_pages import command_pages

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "docs"

CONTENTS = {
    "Tutorials": (
        *(f"tutorials/{name}.md" for name in ("float_model", "assembly", "system", "board", "sweep")),
        *("tutorials/*.md", "notebooks/*.md"),
    ),
    "Using it": ("compiler.md", "networks.md", "troubleshooting.md", "cli/index.md", "api/index.md"),
    "The machine": (
        "hardware.md",
        "verilog.md",
        "isa.md",
        "registers.md",
        "c_driver.md",
        "serial.md",
        "program_file.md",
        "glossary.md",
    ),
    "Figures": ("figures.md", "performance.md", "cycle_model.md", "tpu_v1.md", "fpga.md"),
    "Development": ("verification.md", "contributing.md"),
}
"""The pages in the order of the sidebar. A document that no pattern names follows under `More`."""


def main() -> int:
    """Build the site; returns the exit status."""
    options = _options()
    source = options.output.with_name(f"{options.output.name}-source")
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(options.output, ignore_errors=True)
    write_source(source)
    builder = ["-W", "--keep-going", "-q", "-b", "html", "-E", "-c", str(DOCUMENTS / "site")]
    status = build_main([*builder, "-d", str(source / ".doctrees"), str(source), str(options.output)])
    if not status:
        print(f"{options.output / 'index.html'}")
    return status


def write_source(folder: Path) -> None:
    """Write the pages that Sphinx reads."""
    for path in sorted(DOCUMENTS.rglob("*")):
        target = folder / path.relative_to(DOCUMENTS)
        if path.is_dir() or path.parent.name == "site":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(_inside(path.read_text(), path.parent))
        else:
            shutil.copy(path, target)
            if path.suffix == ".ipynb":
                target.with_suffix(".md").write_text(_inside(notebook_page(path), path.parent))
    _write_all(folder / "cli", command_pages())
    _write_all(folder / "api", api_pages())
    home = (DOCUMENTS / "site" / "index.md").read_text().replace("](../", "](")
    (folder / "index.md").write_text(home + "\n" + contents(folder))


def contents(folder: Path) -> str:
    """The lists of pages for the sidebar."""
    named = {}
    for part, patterns in CONTENTS.items():
        named[part] = list(dict.fromkeys(path for pattern in patterns for path in sorted(folder.glob(pattern))))
    seen = {path for paths in named.values() for path in paths}
    named["More"] = [path for path in sorted(folder.glob("*.md")) if path not in seen and path.name != "index.md"]
    parts = []
    for part, paths in named.items():
        if paths:
            pages = "\n".join(path.relative_to(folder).with_suffix("").as_posix() for path in paths)
            parts.append(f"```{{toctree}}\n:caption: {part}\n:hidden:\n:maxdepth: 1\n\n{pages}\n```\n")
    return "\n".join(parts)


def notebook_page(path: Path) -> str:
    """The cells of a notebook as a page."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join([*parts, f"{{download}}`The notebook <{path.name}>`", ""])


def _inside(text: str, folder: Path) -> str:
    """A document whose links to files outside of docs/ are names of these files in the repository."""

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        path = (folder / target).resolve()
        if path.is_relative_to(DOCUMENTS) or not path.exists():
            return match.group()
        name = path.relative_to(ROOT).as_posix()
        bare = label.replace("\n", " ").strip("`")
        return f"`{name}`" if bare in (name, path.name) else f"{label} (`{name}`)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", link, text)


def _write_all(folder: Path, pages: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", help="folder (default %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
