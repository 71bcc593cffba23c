"""Pages of the site for the commands, made from the command line itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from openmxu.cli.application import application

__all__ = ["command_pages"]

_NAME = "openmxu"


def command_pages() -> dict[str, str]:
    """The Markdown of a page for each command and group of commands, by the page's name; ``index`` is the whole."""
    root = typer.main.get_command(application)
    pages = {name: _page(command, f"{_NAME} {name}") for name, command in sorted(_commands(root).items())}
    contents = ["```{toctree}", ":maxdepth: 2", "", *pages, "```"]
    return pages | {"index": "\n".join([_page(root, _NAME, "The command line"), *contents, ""])}


def _page(command: Any, path: str, title: str | None = None, level: int = 1) -> str:
    """The page of a command; the commands of a group follow as sections, those of the root have their own pages."""
    context = command.make_context(path, [], resilient_parsing=True)
    parts = [f"{'#' * level} {title or path}", inspect.cleandoc(command.help or "")]
    parts.append(f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```")
    for kind, heading in (("argument", "Arguments"), ("option", "Options")):
        rows = list(_rows(command, context, kind))
        if rows:
            parts.append(f"**{heading}**\n\n" + "\n".join(rows))
    lines = [line for line in (command.epilog or "").split("\n\n") if line]
    if lines and lines[0] == "Examples:":
        parts.append("**Examples**\n\n```sh\n" + "\n".join(lines[1:]) + "\n```")
    else:
        parts.extend(lines)
    if level == 1 and path != _NAME:
        parts.extend(_page(child, f"{path} {name}", level=2) for name, child in _commands(command).items())
    return "\n\n".join(parts) + "\n"


def _rows(command: Any, context: Any, kind: str) -> Iterator[str]:
    """A list entry for each parameter of a kind: its names, and the help that the terminal shows."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if parameter.param_type_name == kind and record is not None:
            names, text = record
            yield f"- `{names}`: {_escaped(text)}" if text else f"- `{names}`"


def _escaped(text: str) -> str:
    """Text of a terminal as Markdown that shows the same characters."""
    for character in "\\`*_<[":
        text = text.replace(character, "\\" + character)
    return text


def _commands(group: Any) -> dict[str, Any]:
    return {name: command for name, command in getattr(group, "commands", {}).items() if not command.hidden}
