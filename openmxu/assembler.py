"""Assembly text to instructions.

One instruction per line: a mnemonic and its fields, ``name=value`` or a bare flag, separated by commas. ``docs/isa.md``
describes the language; :mod:`openmxu.disassembler` writes it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import FORMATS, WORD_BITS, Field, Format, Instruction, Opcode, register_format
from openmxu.arch.legality import LegalityChecker

__all__ = ["WORD_DIRECTIVE", "AssemblyError", "assemble"]

WORD_DIRECTIVE = ".word"
"""Directive for a raw word, legal or not."""

_LONGEST_QUOTE = 40
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
      | (?P<comment>[\#;].*)
      | (?P<name>\.?[A-Za-z_][A-Za-z0-9_]*)
      | (?P<integer>[+-]?[0-9][0-9A-Za-z_]*)
      | (?P<mark>[=,])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?(0|[1-9](_?[0-9])*|0[xX](_?[0-9a-fA-F])+|0[oO](_?[0-7])+|0[bB](_?[01])+)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_FORMATS = {format.mnemonic: format for format in FORMATS}


class AssemblyError(OpenmxuError, ValueError):
    """The text is not a valid program; the message is one line, ``name:line:column: problem``.

    Attributes
    ----------
    name : str
        Name of the text, usually its file name.
    line, column : int
        Where the problem is; both count from 1, columns in characters.
    problem : str
        What was found and what was expected.
    fault : FaultCode
        The fault that the instruction would raise on the device; ``NONE`` for errors of the text itself.
    """

    def __init__(self, name: str, line: int, column: int, problem: str, fault: FaultCode = FaultCode.NONE) -> None:
        self.name = name
        self.line = line
        self.column = column
        self.problem = problem
        self.fault = fault
        super().__init__(f"{name}:{line}:{column}: {problem}")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the line"
        return repr(self.text if len(self.text) <= _LONGEST_QUOTE else f"{self.text[:_LONGEST_QUOTE]}...")


@dataclass(frozen=True)
class _Item:
    """One field as written: ``value`` is ``None`` for a bare word."""

    name: _Token
    value: _Token | None


@dataclass(frozen=True)
class _Line:
    """A line of the text and its place, for error messages."""

    source: str
    number: int

    def unexpected(self, found: _Token, expected: str, candidates: Sequence[str] = ()) -> AssemblyError:
        """The error for ``found``; the closest of ``candidates`` is suggested."""
        problem = f"found {found}, expected {expected}"
        if len(found.text) <= _LONGEST_QUOTE:
            spellings = {candidate.lower(): candidate for candidate in candidates}
            for close in difflib.get_close_matches(found.text.lower(), spellings, n=1):
                problem += f"; did you mean {spellings[close]!r}?"
        return AssemblyError(self.source, self.number, found.column, problem)


def assemble(text: str, config: Config | None = None, *, name: str = "<string>") -> list[Instruction]:
    """Translate assembly to instructions.

    Parameters
    ----------
    text
        The program. Lines end with LF, CR LF or CR.
    config
        The core that will run it: the first instruction that would raise a fault there is an error. Without a
        configuration every encodable instruction is accepted. Memory windows belong to the driver and are not checked.
    name
        Name of the text in errors.

    Raises
    ------
    AssemblyError
        The text is not a program, or the program is not legal for ``config``.
    """
    checker = None if config is None else LegalityChecker(config)
    program = []
    for number, line_text in enumerate(_LINE_END.split(text), start=1):
        tokens = _tokenize(line_text)
        if tokens[0].kind == "end":
            continue
        instruction = _LineParser(_Line(name, number), tokens).parse()
        if checker is not None and (fault := checker.check(instruction)) is not FaultCode.NONE:
            reason = checker.illegal_value(instruction) if fault is FaultCode.ILLEGAL_VALUE else None
            problem = f"{fault.name}: {reason or FAULT_DESCRIPTIONS[fault]}"
            raise AssemblyError(name, number, tokens[0].column, problem, fault)
        program.append(instruction)
    return program


def _tokenize(text: str) -> list[_Token]:
    """The tokens of a line without blanks and comment; the last token marks the line's end."""
    tokens = []
    end = len(text)
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "comment":
            end = match.start()
            break
        if match.lastgroup != "space":
            assert match.lastgroup is not None, "every alternative has a name"
            tokens.append(_Token(match.lastgroup, match.group(), match.start() + 1))
    tokens.append(_Token("end", "", end + 1))
    return tokens


class _LineParser:
    """Parses the instruction of a non-empty line."""

    def __init__(self, line: _Line, tokens: list[_Token]) -> None:
        self._line = line
        self._tokens = tokens
        self._position = 0

    def parse(self) -> Instruction:
        mnemonic = self._take()
        if mnemonic.text.lower() == WORD_DIRECTIVE:
            return self._raw_word()
        format = _FORMATS.get(mnemonic.text.lower())
        if format is None:
            known = (*_FORMATS, WORD_DIRECTIVE)
            raise self._line.unexpected(mnemonic, f"an instruction: {', '.join(known)}", known)
        items = self._items(format)
        if format.opcode is Opcode.SET_CONFIGURATION:
            return self._set_configuration(format, items)
        return format(**self._values(items, format.fields, format.name))

    def _peek(self) -> _Token:
        return self._tokens[self._position]

    def _take(self) -> _Token:
        token = self._peek()
        if token.kind != "end":
            self._position += 1
        return token

    def _raw_word(self) -> Instruction:
        expected = f"a word from 0 to 2**{WORD_BITS} - 1"
        token = self._take()
        value = _integer(token)
        if value is None or not 0 <= value < 1 << WORD_BITS:
            raise self._line.unexpected(token, expected)
        if self._peek().kind != "end":
            raise self._line.unexpected(self._peek(), "the end of the line")
        return Instruction(value)

    def _items(self, format: Format) -> list[_Item]:
        items: list[_Item] = []
        if self._peek().kind == "end":
            return items
        if not format.fields:
            raise self._line.unexpected(self._peek(), f"the end of the line: {format.name} has no fields")
        while True:
            name = self._take()
            if name.kind != "name":
                raise self._line.unexpected(name, "the name of a field")
            value = None
            if self._peek().text == "=":
                self._take()
                value = self._take()
            items.append(_Item(name, value))
            if value is not None and value.kind not in ("name", "integer"):
                return items  # no field takes this: the rest of the line would hide where the error is
            separator = self._take()
            if separator.kind == "end":
                return items
            if separator.text != ",":
                expected = "',' or the end of the line" if value else "'=', ',' or the end of the line"
                raise self._line.unexpected(separator, expected)

    def _values(self, items: list[_Item], fields: Sequence[Field], owner: str) -> dict[str, int]:
        known = {field.name: field for field in fields}
        values: dict[str, int] = {}
        for item in items:
            field = known.get(item.name.text.lower())
            if field is None:
                raise self._line.unexpected(item.name, f"a field of {owner}: {', '.join(known)}", tuple(known))
            if field.name in values:
                raise self._line.unexpected(item.name, "every field once, and it is there already")
            values[field.name] = self._value(field, item)
        return values

    def _value(self, field: Field, item: _Item) -> int:
        range_text = f"an integer from {field.minimum} to {field.maximum}"
        choices = {choice.name: int(choice) for choice in field.choices or ()}
        if choices:
            range_text = f"{', '.join(choices)} or {range_text}"
        token = item.value
        if token is None:
            if field.is_flag:
                return 1
            raise self._line.unexpected(item.name, f"'{field.name}=' and {range_text}")
        if token.text.upper() in choices:
            return choices[token.text.upper()]
        value = _integer(token)
        if value is None or not field.minimum <= value <= field.maximum:
            raise self._line.unexpected(token, f"{range_text} for {field.name}", tuple(choices))
        return value

    def _set_configuration(self, format: Format, items: list[_Item]) -> Instruction:
        """The value is written as a number, or with the fields of the register that the line names."""
        number_items = [item for item in items if item.name.text.lower() == "register"]
        numbers = self._values(number_items, format.fields, format.name)
        register = register_format(numbers["register"]) if numbers else None
        if register is None:
            return format(**self._values(items, format.fields, f"{format.name} that names no known register"))
        values = self._values(items, (*format.fields, *register.fields), f"{format.name} {register.name}")
        own = {field.name: values[field.name] for field in register.fields if field.name in values}
        if not own:
            return format(**values)
        if "value" in values:
            clash = next(item.name for item in items if item.name.text.lower() == "value")
            raise self._line.unexpected(clash, f"either value or the fields of {register.name}")
        return format(register=register.number, value=register.pack(**own))


def _integer(token: _Token) -> int | None:
    """The value of a number token; ``None`` if the token is not a number."""
    if token.kind != "integer" or _INTEGER.fullmatch(token.text) is None:
        return None
    try:
        return int(token.text, 0)
    except ValueError:  # more decimal digits than Python converts: far outside every field
        return None
