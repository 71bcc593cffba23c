"""docs/library.md runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "library.md").read_text()


def test_blocks_run_one_after_the_other():
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    program = "".join([blocks[-1], *blocks[:-1], "assert len(classify(images[:9])) == 9\n"])
    result = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "100%"
    assert "INFO:openmxu.compiler.translate:compiled 2 layers" in result.stderr
