"""The modules of a Verilog text."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["with_modules"]

_MODULE = re.compile(r"^module .*?^endmodule", re.MULTILINE | re.DOTALL)


def with_modules(verilog: str, changed: Callable[[str], str]) -> str:
    """The same text with what ``changed`` makes of each module."""
    return _MODULE.sub(lambda module: changed(module[0]), verilog)
