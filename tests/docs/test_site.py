"""The site builds without a warning, and has a page for every command and every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import openmxu
from openmxu.cli.application import application
from scripts.docs.command_pages import command_pages

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "scripts.docs.site", "--output", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return folder


@pytest.mark.slow  # the build takes twenty seconds
def test_every_document_is_a_page(site):
    documents = [
        path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "site"
    ]
    home = (site / "index.html").read_text()
    for document in documents:
        page = document.with_suffix(".html").as_posix()
        assert (site / page).is_file()
        assert f'href="{page}"' in home


@pytest.mark.slow  # the build takes twenty seconds
def test_public_names_are_described(site):
    page = (site / "api" / "openmxu.html").read_text()
    for name in openmxu.__all__:
        assert f'id="openmxu.{name}"' in page, name


@pytest.mark.slow  # the build takes twenty seconds
def test_nothing_is_loaded_from_the_network(site):
    loaded = r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//|<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//'
    for page in site.rglob("*.html"):
        assert re.search(loaded, page.read_text()) is None, page


def test_commands_are_those_of_the_command_line():
    pages = command_pages()
    names = [command.name for command in application.registered_commands]
    assert {*names, "bench", "index"} <= set(pages)
    assert "- `--report`: Report the cost and the limit of each layer." in pages["compile"]
    assert "openmxu bench gemm 64 64 64 --size 8" in pages["bench"]
    assert all(f"\n{name}\n" in pages["index"] for name in names)
