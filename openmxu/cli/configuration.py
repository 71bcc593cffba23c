"""The options that select the configuration of a core, the same for every command that needs one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, get_type_hints

import typer

from openmxu.arch import PRESETS, Config
from openmxu.arch.profile import PROFILES
from openmxu.cli.errors import InputError, as_typed

__all__ = ["DEFAULTS", "ConfigChoice", "configured"]

_PANEL = "Configuration of the core"


def _number(name: str, metavar: str, what: str, values: str) -> Any:
    """An option for a number: the validation of :class:`~openmxu.arch.Config` has the legal ``values``."""
    help = f"{what}: {values}. Default: that of the size or the preset."
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=_PANEL)


_BUS_BYTES = "a power of two from 4 to 64"

_PARAMETERS = {
    "size": ("size",),
    "profile": ("profile",),
    "bus_bytes": ("host_data_bytes", "weight_data_bytes"),
    "host_bus_bytes": ("host_data_bytes",),
    "weight_bus_bytes": ("weight_data_bytes",),
    "lanes": ("activation_lanes",),
    "unified_buffer": ("unified_buffer_rows",),
    "accumulators": ("accumulator_rows",),
    "weight_fifo": ("weight_fifo_tiles",),
    "weight_queue": ("weight_queue_depth",),
    "parameter_sets": ("parameter_sets",),
    "queue_depth": ("command_queue_depth",),
}
"""The parameters that each option sets, where none behind it sets them too; a preset sets all of them."""


@dataclass(frozen=True, kw_only=True)
class ConfigChoice:
    """What the options say; ``None`` where they leave the default."""

    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            metavar="S",
            help=f"The array is S × S: a power of two from 2 to 256. Default: {Config.size}.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help=f"A named configuration: {', '.join(PRESETS)}.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help=f"Part of the instruction set that the core has: {', '.join(profile.name for profile in PROFILES)}. "
            "Products of two activations, as in transformers, need full. Default: full from size 16 on, else standard.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    bus_bytes: Annotated[int | None, _number("--bus-bytes", "N", "Width of both memory buses in bytes", _BUS_BYTES)] = (
        None
    )
    host_bus_bytes: Annotated[
        int | None,
        _number("--host-bus-bytes", "N", "Width of the host memory bus in bytes, in place of --bus-bytes", _BUS_BYTES),
    ] = None
    weight_bus_bytes: Annotated[
        int | None,
        _number(
            "--weight-bus-bytes", "N", "Width of the weight memory bus in bytes, in place of --bus-bytes", _BUS_BYTES
        ),
    ] = None
    lanes: Annotated[
        int | None,
        _number("--lanes", "N", "Columns that the activation unit finishes per cycle", "from 1 to S, a divisor of S"),
    ] = None
    unified_buffer: Annotated[
        int | None,
        _number(
            *("--unified-buffer", "ROWS", "Rows of S bytes in the unified buffer"),
            "from 4 to 16777216, a multiple of its banks, which are 2 without a preset",
        ),
    ] = None
    accumulators: Annotated[
        int | None, _number("--accumulators", "ROWS", "Rows of S sums", "an even number from 4 to 65536")
    ] = None
    weight_fifo: Annotated[
        int | None, _number("--weight-fifo", "TILES", "Tiles of S × S weights in the weight FIFO", "from 2 to 256")
    ] = None
    weight_queue: Annotated[
        int | None,
        _number(
            *("--weight-queue", "N", "Reads and loads of weights that may be outstanding before their tiles are taken"),
            "from 1 to 64, in the profile lite 1",
        ),
    ] = None
    parameter_sets: Annotated[
        int | None,
        _number("--parameter-sets", "N", "Sets of S biases and scales in the activation unit", "from 1 to 65536"),
    ] = None
    queue_depth: Annotated[
        int | None,
        _number("--queue-depth", "N", "Instructions that may be in flight in each unit", "a power of two from 2 to 16"),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether any option says anything."""
        return any(value is not None for value in asdict(self).values())

    @property
    def arguments(self) -> list[str]:
        """The options and their values as they would be typed."""
        given = ((name, value) for name, value in asdict(self).items() if value is not None)
        return [word for name, value in given for word in (as_typed(name), str(value))]

    def config(self) -> Config:
        """The configuration.

        Raises
        ------
        InputError
            Size and preset are both given, the preset or the profile is unknown, or a value is not legal.
        """
        self._check_size()
        options = self._options()
        changes: dict[str, Any] = {name: getattr(self, option) for name, option in options.items() if name != "size"}
        try:
            if self.preset is not None:
                return Config.preset(self.preset, **changes)
            return Config.for_size(Config.size if self.size is None else self.size, **changes)
        except ValueError as error:
            name, _, problem = str(error).partition(" ")
            raise InputError(f"{as_typed(options[name])} {problem}" if name in options else str(error)) from None

    def check_board(self, config: Config, where: str) -> None:
        """Check that no option contradicts the configuration that a board reports.

        Raises
        ------
        InputError
            One does; the message names it, and what the board has. Or size and preset are both given, or the preset is
            unknown.
        """
        self._check_size()
        options = self._options()
        wanted = {name: getattr(self, option) for name, option in options.items()}
        if self.preset is not None:
            try:
                wanted = Config.preset(self.preset).as_dict() | wanted
            except ValueError as error:
                raise InputError(str(error)) from None
        for name, value in wanted.items():
            if getattr(config, name) != value:
                option = options.get(name, "preset")
                raise InputError(
                    f"the board at {where} has {name} {getattr(config, name)}, and {as_typed(option)} "
                    f"{getattr(self, option)} means {value}: leave it out, and the board's configuration is used"
                )

    def _check_size(self) -> None:
        if self.size is not None and self.preset is not None:
            raise InputError("--size and --preset exclude each other: a preset has its own size")

    def _options(self) -> dict[str, str]:
        """The parameters that are set, each with the option that sets it."""
        given = {option: names for option, names in _PARAMETERS.items() if getattr(self, option) is not None}
        return {name: option for option, names in given.items() for name in names}


DEFAULTS = ConfigChoice()


def configured(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of a :class:`ConfigChoice` in place of its parameter ``choice``."""
    options = get_type_hints(ConfigChoice, include_extras=True)
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "choice":
            parameters += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
                for name, annotation in options.items()
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        choice = ConfigChoice(**{name: values.pop(name) for name in options})
        command(choice=choice, **values)

    signature = inspect.Signature(parameters)
    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del wrapper.__wrapped__
    return wrapper
