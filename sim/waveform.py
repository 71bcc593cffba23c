"""Waveforms of Amaranth's simulator as arrays: the values of inner signals in each cycle of a clock."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from vcd.reader import Token, TokenKind, tokenize

__all__ = ["WIDEST", "Waveform"]

WIDEST = 62
"""Most bits of a signal, so that its values and those of one bit more fit in int64."""


class Waveform(io.StringIO):
    """A value change dump in memory, to be passed to ``Simulator.write_vcd``."""

    def close(self) -> None:
        """Do nothing: the simulator closes what it has written, and it is still to be read."""

    def signals(self, clock: str) -> dict[tuple[str, ...], NDArray[np.int64]]:
        """The signals by their path below the top level, one value for each rising edge of ``clock``: that before it.

        Names are without the numbers that Amaranth adds to make them unique. Of two signals with the same name, that
        of the unit itself is meant rather than the port of another one. Signals of more than one bit are signed;
        wider ones than :data:`WIDEST` are left out.
        """
        # Amaranth writes "$signal" for a signal without a name, which the reader takes for a keyword.
        tokens = tokenize(io.BytesIO(self.getvalue().replace(" $signal", " signal").encode()))
        paths = _declarations(tokens)
        (clock_code,) = {code for path, (code, _) in paths.items() if path == (clock,)}
        state: dict[str, int] = {}
        history: dict[str, list[int]] = {code: [] for code, _ in paths.values()}
        for changes in _instants(tokens):
            if changes.get(clock_code) == 1 and state:
                for code, values in history.items():
                    values.append(state.get(code, 0))
            state |= changes
        return {path: _signed(history[code], width) for path, (code, width) in paths.items()}


def _declarations(tokens: Iterator[Token]) -> dict[tuple[str, ...], tuple[str, int]]:
    """Code and width of each signal by its path."""
    scope: list[str] = []
    # The codes that each scope of the path declares, from outside to inside.
    declared: list[set[str]] = []
    found: dict[tuple[str, ...], tuple[str, int]] = {}
    inherited: set[tuple[str, ...]] = set()
    for token in tokens:
        if token.kind is TokenKind.SCOPE:
            scope.append(token.scope.ident)
            declared.append(set())
        elif token.kind is TokenKind.UPSCOPE:
            scope.pop()
            declared.pop()
        elif token.kind is TokenKind.ENDDEFINITIONS:
            break
        elif token.kind is TokenKind.VAR and token.var.size <= WIDEST:
            code, name = token.var.id_code, token.var.reference.partition("$")[0]
            is_inherited = any(code in outer for outer in declared[:-1])
            declared[-1].add(code)
            # The outermost two scopes are the simulator's.
            path = (*scope[2:], name)
            if path not in found or (path in inherited and not is_inherited):
                found[path] = (code, token.var.size)
                inherited.discard(path)
                if is_inherited:
                    inherited.add(path)
    return found


def _instants(tokens: Iterator[Token]) -> Iterator[dict[str, int]]:
    """The changes of each instant by the signals' codes."""
    changes: dict[str, int] = {}
    for token in tokens:
        if token.kind is TokenKind.CHANGE_TIME:
            yield changes
            changes = {}
        elif token.kind is TokenKind.CHANGE_SCALAR:
            changes[token.scalar_change.id_code] = int(token.scalar_change.value)
        elif token.kind is TokenKind.CHANGE_VECTOR:
            changes[token.vector_change.id_code] = int(token.vector_change.value)
    yield changes


def _signed(values: list[int], width: int) -> NDArray[np.int64]:
    numbers = np.array(values, np.int64)
    return numbers if width == 1 else np.where(numbers >> (width - 1), numbers - (1 << width), numbers)
