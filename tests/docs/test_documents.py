"""The files and link targets that the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))]
FOLDERS = "docs|examples|openmxu|rtl|scripts|sim|tb|tests|typings"


def named_files(text: str) -> set[str]:
    """The files and folders in backticks, relative to the repository; they may be patterns."""
    return set(re.findall(rf"`((?:{FOLDERS})/[\w./*]+)`", text))


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_files_exist(document):
    assert {path for path in named_files((ROOT / document).read_text()) if not any(ROOT.glob(path))} == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    here = ROOT / document
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", here.read_text()):
        there = here.parent / target if target else here
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text()), f"{target}#{anchor}"


def test_names_and_anchors_are_found():
    assert named_files("`rtl/core.py`, `rtl/*/*.py`, `core`, `make rtl/`") == {"rtl/core.py", "rtl/*/*.py"}
    assert anchors("# Passes of `it`\n\ntext\n\n## The profile `lite`: one\n") == {
        "passes-of-it",
        "the-profile-lite-one",
    }


def test_picture_of_overlap_is_up_to_date():
    from scripts.docs.overlap import PICTURE, picture

    assert PICTURE.read_text() == picture(), "python -m scripts.docs.overlap"
