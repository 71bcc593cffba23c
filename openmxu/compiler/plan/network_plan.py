"""Networks of convolutions, pooling and element-wise operations to programs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLES
from openmxu.arch.isa import Instruction
from openmxu.compiler.emit.activate import element_chunks, pooling_chunks
from openmxu.compiler.emit.constants import Constants
from openmxu.compiler.emit.convolve import ConvolutionTasks
from openmxu.compiler.emit.deferred_activations import Chunk, DeferredActivations
from openmxu.compiler.emit.emitter import Code, ParameterSets
from openmxu.compiler.emit.list_scheduler import list_schedule
from openmxu.compiler.emit.memory import aligned, check_addresses
from openmxu.compiler.emit.permute import permutation_tasks
from openmxu.compiler.emit.strip import Machine, Strip, Tables, has_table
from openmxu.compiler.emit.tasks import TaskList
from openmxu.compiler.emit.tiles import KernelTiles, kernel_tiles
from openmxu.compiler.emit.weight_copies import load_copies
from openmxu.compiler.ir.network import Port
from openmxu.compiler.ir.operations import Convolution, Pooling
from openmxu.compiler.ir.permutation import Permutation
from openmxu.compiler.plan.bands import Section, sections
from openmxu.compiler.plan.buffers import Buffer, HostPlace
from openmxu.compiler.plan.fusion_groups import Group
from openmxu.compiler.plan.planned_network import PlannedNetwork
from openmxu.compiler.plan.ramp import Ramp
from openmxu.compiler.plan.search import fastest
from openmxu.compiler.plan.slots import strip_buffers
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.constants import weight_tiles
from openmxu.compiler.recurrent.emission import CellTasks
from openmxu.compiler.target import Target
from openmxu.compiler.tensor_products.emission import tensor_product_tasks
from openmxu.compiler.tensor_products.product import TensorProduct
from openmxu.compiler.tensor_products.support import filled_inputs
from openmxu.layer import Layer
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_tensor import HostTensor
from openmxu.state import State

__all__ = ["Base", "CompiledNetwork", "compile_planes"]

_OF_ARRAY = (Convolution, Permutation, TensorProduct)
"""Operations of the array; others are the activation unit's alone."""


@dataclass(frozen=True)
class Base:
    """What the segments of a program that come before take: bytes of host memory, tiles, instructions and layers."""

    host_bytes: int = 0
    tiles: int = 0
    instructions: int = 0
    layers: int = 0


@dataclass(frozen=True)
class CompiledNetwork:
    """A network as a segment of a program, and what it adds to the program: fields as those of a program.

    ``base`` is that of a segment behind it.
    """

    segment: DeviceSegment
    instructions: tuple[Instruction, ...]
    weights: NDArray[np.uint8]
    constants: NDArray[np.uint8]
    multiply_adds: int
    layers: tuple[Layer, ...]
    layer_numbers: NDArray[np.int32]
    states: tuple[State, ...]
    base: Base


def compile_planes(plan: PlannedNetwork, config: Target, base: Base, effort: int = 1) -> CompiledNetwork:
    """Compile a network; ``effort`` as in :func:`~openmxu.compiler.plan.search.fastest`.

    Raises
    ------
    CapacityError
        Host memory or weight memory is too small, together with the segments that come before.
    """

    @functools.cache
    def draft(limits: Config) -> _Draft:
        return _Draft.of(plan if limits == config else plan.replanned(limits), limits, base)

    operations, tensors = plan.network.operations, plan.network.tensors
    recurrent = [operation for operation in operations if isinstance(operation, Recurrent)]
    best = fastest(
        lambda limits, ramp, steps=None: draft(limits).program(ramp, steps),
        operations[0],
        config,
        effort,
        steps=max((tensors[operation.sources[0]].positions for operation in recurrent), default=0),
    )
    return best.compiled()


@dataclass(frozen=True)
class _Draft:
    """What all programs for a planned network share, behind the segments that end at ``base``.

    Attributes
    ----------
    config
        The core, perhaps with smaller memories: a program may leave a part of them unused.
    constants
        At their addresses; from ``copies`` to ``constants_end`` lie copies of weights.
    weights_of
        The weights for a number of output tiles that the first convolution sums up side by side, and whether it sums
        up those of its last band apart.
    """

    plan: PlannedNetwork
    config: Config
    base: Base
    constants: Constants
    copies: int
    constants_end: int
    places: Mapping[str, HostPlace]
    host_bytes: int
    weights_of: Callable[[int, bool], _Weights]

    @classmethod
    def of(cls, plan: PlannedNetwork, config: Config, base: Base) -> _Draft:
        """Place the network's constants and tensors."""
        constants = plan.constants.at(base.host_bytes)
        copies = base.host_bytes + constants.data.size
        weights_of = functools.cache(lambda together, apart: _Weights.of(plan, together, apart, config, base.tiles))
        # Tiles are as many however they are grouped; without copies there is no need to make them only to count.
        count = len(weights_of(1, False).copied) if plan.ports.operations else 0
        constants_end = copies + aligned(count * config.tile_bytes)
        places, host_bytes = _place_tensors(plan, constants, config.size, constants_end)
        check_addresses(host_bytes, 0, config)
        return cls(plan, config, base, constants, copies, constants_end, places, host_bytes, weights_of)

    def program(self, ramp: Ramp, steps: int | None) -> _Attempt:
        """A program that begins and ends in one way; of recurrent cells it does the first ``steps`` steps, or all."""
        weights = self.weights_of(ramp.together, ramp.apart)
        scheduler = _Scheduler(self.plan, weights, self.constants, self.copies, self.places, self.config, ramp, steps)
        return _Attempt(self, scheduler.code(), weights)

    def compiled(self, code: Code, weights: _Weights) -> CompiledNetwork:
        """The network with one of its programs."""
        plan, base, config = self.plan, self.base, self.config
        network, layers = plan.network, plan.layers
        layouts = {group.operations.start: group.layout for group in plan.groups if group.layout is not None}
        memory = weights.bytes()
        weight_bytes = base.tiles * config.tile_bytes + memory.size
        check_addresses(self.host_bytes, weight_bytes, config)
        host_constants = np.zeros(self.constants_end - base.host_bytes, np.uint8)
        host_constants[: self.constants.data.size] = self.constants.data
        copied = weights.copies()
        host_constants[self.constants.data.size :][: copied.size] = copied
        fills = filled_inputs(network, config.size)

        def placed(port: Port) -> HostTensor:
            offset = self.places[port.tensor].address
            return dataclasses.replace(port.host, offset=offset, fill=fills.get(port.tensor, 0))

        end = Base(
            host_bytes=self.host_bytes,
            tiles=weight_bytes // config.tile_bytes,
            instructions=base.instructions + len(code.instructions),
            layers=base.layers + len(layers),
        )
        segment = DeviceSegment(
            inputs=tuple(placed(port) for port in network.inputs),
            outputs=tuple(placed(port) for port in network.outputs),
            batch=plan.batch,
            elements=network.batch if network.is_whole else None,
            start=base.instructions,
            stop=end.instructions,
            layers=(base.layers, end.layers),
            constants=(base.host_bytes, host_constants.size),
        )
        return CompiledNetwork(
            segment=segment,
            instructions=code.instructions,
            weights=memory,
            constants=host_constants,
            multiply_adds=plan.multiply_adds,
            layers=layers,
            layer_numbers=np.where(code.layers < 0, -1, code.layers + base.layers).astype(np.int32),
            states=plan.kept.states(network, layouts, config.size),
            base=end,
        )


@dataclass(frozen=True)
class _Weights:
    """Tiles of every convolution, by number of the operation, and the number of its first one in weight memory.

    ``memory`` are the tiles of all operations from number ``base`` on, and ``copied`` the numbers of those that have a
    copy in host memory.
    """

    tiles: Mapping[int, KernelTiles]
    first: Mapping[int, int]
    memory: tuple[NDArray[np.uint8], ...]
    base: int
    copied: tuple[int, ...]

    @classmethod
    def of(cls, plan: PlannedNetwork, together: int, apart: bool, config: Config, base: int) -> _Weights:
        """The weights from tile ``base`` on, where the first convolution sums up ``together`` output tiles side by
        side, and those of its last band ``apart``."""
        starts = {group.operations.start: group for group in plan.groups}
        tiles, first = {}, {}
        memory: list[NDArray[np.uint8]] = []
        copied: list[int] = []
        for index, operation in enumerate(plan.network.operations):
            first[index] = base + len(memory)
            if isinstance(operation, Convolution):
                following = starts[index].together if index in starts else 1
                is_ramp = index == 0 and following == 1
                first_group = together if is_ramp else following
                # With one operation alone the end of the program is that of the first convolution.
                is_alone = len(plan.network.operations) == 1 and not plan.ports.operations
                is_apart = apart and is_alone and first_group > 1
                tiles[index] = kernel_tiles(operation, config.size, first_group, following, apart=is_apart)
                memory += tiles[index].bytes()
            if isinstance(operation, Permutation):
                memory += plan.selections[index].bytes()
            if isinstance(operation, Recurrent):
                memory += weight_tiles(operation, starts[index].layout)
            if index in plan.ports.operations:
                copied += plan.ports.copied(index, range(first[index], base + len(memory)))
        return cls(tiles, first, tuple(memory), base, tuple(copied))

    def bytes(self) -> NDArray[np.uint8]:
        """Weight memory."""
        return _joined(self.memory)

    def copies(self) -> NDArray[np.uint8]:
        """The tiles that have a copy in host memory, one after the other."""
        return _joined([self.memory[number - self.base] for number in self.copied])


def _joined(tiles: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    return np.concatenate([tile.reshape(-1) for tile in tiles]) if tiles else np.zeros(0, np.uint8)


@dataclass(frozen=True)
class _Attempt:
    """A program, and the weights that it is for."""

    draft: _Draft
    code: Code
    weights: _Weights

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Of the program."""
        return self.code.instructions

    def compiled(self) -> CompiledNetwork:
        """The network with this program."""
        return self.draft.compiled(self.code, self.weights)


def _place_tensors(
    plan: PlannedNetwork, constants: Constants, size: int, base: int
) -> tuple[dict[str, HostPlace], int]:
    """The tensors in host memory: among the constants, and from ``base`` on inputs, outputs, and what goes from one
    group to another."""
    network, batch = plan.network, plan.images
    places = {name: HostPlace(address, 1) for name, address in constants.tensors.items()}
    end = base
    for name in dict.fromkeys(name for group in plan.groups for name in (*group.sources, *group.targets)):
        if name not in places:
            places[name] = HostPlace(end, batch)
            tensor = network.tensors[name]
            length = -(-tensor.channels // size) * batch * tensor.positions * tensor.item * size
            end += aligned(length)
    return places, end


@dataclass(frozen=True)
class _Scheduler:
    plan: PlannedNetwork
    weights: _Weights
    constants: Constants
    copies: int
    places: Mapping[str, HostPlace]
    config: Config
    ramp: Ramp
    steps: int | None

    def code(self) -> Code:
        """The program, ended by Halt."""
        constants, staging, config = self.constants, self.plan.staging, self.config
        tasks = TaskList(config)
        parameters = ParameterSets(
            tasks, config, constants.parameters, constants.sets, staging.load_sets, staging.slots
        )
        tables = Tables(tasks, staging.table, constants.tables, config.size)
        machine = Machine(config, tasks, parameters, tables)
        for group in self.plan.groups:
            if group.layout is not None:
                self._recur(machine, group)
                continue
            strips = [self._strip(machine, group, number) for number in range(len(group.strips))]
            for number, run in self._order(group):
                self._operate(run, strips[number], number == 0, number == len(strips) - 1)
        addresses = {
            number: self.copies + index * config.tile_bytes for index, number in enumerate(self.weights.copied)
        }
        work = load_copies(tasks.tasks, addresses, self.plan.ports.ring, config)
        return list_schedule(work, config, spare=self.ramp.spare)

    def _recur(self, machine: Machine, group: Group) -> None:
        """The tasks of a recurrent cell."""
        index = group.operations.start
        operation = self.plan.network.operations[index]
        length = self.plan.network.tensors[operation.sources[0]].positions
        machine.tasks.layer = index
        for strip in group.strips:
            CellTasks(
                index=index,
                operation=operation,
                layout=group.layout,
                base=self.plan.kept.end,
                kept=self.plan.kept.places[index],
                machine=machine,
                first_tile=self.weights.first[index],
                tables=tuple(self.constants.tables[index, number] for number in range(len(operation.tables))),
                places=self.places,
                length=length,
                steps=length if self.steps is None else min(self.steps, length),
                first_image=strip.images.start,
                images=len(strip.images),
            ).run()

    def _buffers(self, group: Group, number: int) -> dict[str, Buffer]:
        """The buffers of a strip."""
        base = self.plan.kept.end + group.first_row + number % group.slots * group.slot_rows
        addresses = {name: base + address for name, address in group.addresses.items()}
        region, size = group.strips[number], self.config.size
        return strip_buffers(self.plan.network, group.operations, region, addresses, size, group.rings)

    def _strip(self, machine: Machine, group: Group, number: int) -> Strip:
        return Strip(
            machine=machine,
            buffers=self._buffers(group, number),
            sources={name: self.places[name] for name in group.sources},
            targets={name: self.places[name] for name in group.targets},
        )

    def _order(self, group: Group) -> Iterator[tuple[int, range]]:
        """Numbers of strips, each with the operations to do for it next.

        In waves, strip s of operation n comes in wave s + n: between the end of a strip in one operation and its
        beginning in the next one lies other work.
        """
        runs, strips = self._runs(group), len(group.strips)
        if not group.waves:
            yield from itertools.product(range(strips), runs)
            return
        for wave in range(strips + len(runs) - 1):
            yield from ((wave - n, run) for n, run in enumerate(runs) if 0 <= wave - n < strips)

    def _runs(self, group: Group) -> list[range]:
        """Operations cut before every one of the array: each with those of the activation unit alone that follow it.

        Two convolutions that work side by side are not cut apart.
        """
        operations = group.operations
        starts = [index for index in operations if isinstance(self.plan.network.operations[index], _OF_ARRAY)]
        edges = [operations.start, *(index for index in starts if index > operations.start), operations.stop]
        runs = [range(start, stop) for start, stop in itertools.pairwise(edges)]
        for number in reversed(range(len(runs) - 1)):
            both = range(runs[number].start, runs[number + 1].stop)
            if len(runs[number]) == 1 and self._are_side_by_side(group, both[0], both[1]) and self._may_alternate(both):
                runs[number : number + 2] = [both]
        return runs

    def _are_side_by_side(self, group: Group, first: int, second: int) -> bool:
        """Whether two convolutions of one tensor take turns: one keeps the array busy and the other the activation
        unit, or one takes at most half as long as the other, and done alone would soon ask for rows that are still to
        be made."""
        own = [self.plan.network.operations[index] for index in (first, second)]
        if not all(isinstance(operation, Convolution) for operation in own) or own[0].sources != own[1].sources:
            return False
        few, many = sorted((self.weights.tiles[index] for index in (first, second)), key=lambda tiles: tiles.count())
        if few.limits(self.config) == many.limits(self.config) and 2 * few.count() > many.count():
            return False
        read = {name for index in group.operations for name in self.plan.network.operations[index].sources}
        targets = [operation.target for operation in own]
        if read.isdisjoint(targets):
            return True  # their rows are on their way to host memory when others take the place
        buffers = self._buffers(group, 0)
        rows = [buffers[name].rows(0, buffers[name].elements) for name in targets]
        return not rows[0].meets(rows[1])

    def _operate(self, run: range, strip: Strip, is_first: bool, is_last: bool) -> None:
        """The tasks of the operations of the array that a run begins with and of what follows them, for one strip."""
        index, operation = run.start, self.plan.network.operations[run.start]
        heads = [other for other in run if isinstance(self.plan.network.operations[other], _OF_ARRAY)]
        followers = run[len(heads) :]
        deferred = DeferredActivations(
            (chunk for other in followers for chunk in self._chunks(other, strip)), self.config.unified_buffer_rows
        )
        if isinstance(operation, Permutation):
            strip.machine.tasks.layer = index
            permutation_tasks(index, operation, self.plan.selections[index], self.weights.first[index], strip)
        elif isinstance(operation, TensorProduct):
            strip.machine.tasks.layer = index
            tensor_product_tasks(index, operation, strip)
        elif heads:
            parts = self._sections(heads, strip, is_first, is_last)
            touches = [emission.touch(section) for emission, section in parts] if followers else []
            for number, (emission, section) in enumerate(parts):
                emission.section(section)
                if followers and self._may_alternate(run):
                    deferred.advance(touches[number + 1 :])
        deferred.advance(())
        strip.flush()

    def _sections(
        self, indices: Sequence[int], strip: Strip, is_first: bool, is_last: bool
    ) -> list[tuple[ConvolutionTasks, Section]]:
        """The sections of some convolutions, those of one evenly between those of another.

        The one that keeps the array busy begins: the activation unit may still have to do what came before.
        """
        parts: list[tuple[float, ConvolutionTasks, Section]] = []
        for index in indices:
            emission, own = self._convolution(index, strip, is_first, is_last)
            delay = 0 if emission.tiles.limits(self.config) else 0.75
            parts += [((number + delay) / len(own), emission, section) for number, section in enumerate(own)]
        return [(emission, section) for _, emission, section in sorted(parts, key=lambda part: part[0])]

    def _convolution(
        self, index: int, strip: Strip, is_first: bool, is_last: bool
    ) -> tuple[ConvolutionTasks, list[Section]]:
        """What makes the tasks of a convolution, and its sections."""
        operation = self.plan.network.operations[index]
        source = strip.buffers[operation.sources[0]].tensor
        numbers = list(self.weights.tiles)
        tiles, first_tile = self.weights.tiles[index], self.weights.first[index]
        region, plane = strip.buffers[operation.target].region, operation.window.outputs(source.height, source.width)
        parts = sections(
            operation,
            region,
            plane,
            tiles,
            self.config,
            self.ramp,
            is_first=is_first and index == numbers[0],
            is_last=is_last and index == numbers[-1],
        )
        return ConvolutionTasks(index, operation, tiles, first_tile, strip), parts

    def _chunks(self, index: int, strip: Strip) -> Iterator[Chunk]:
        """What the activation unit does for an operation alone."""
        operation = self.plan.network.operations[index]
        if isinstance(operation, Pooling):
            return pooling_chunks(index, operation, strip)
        return element_chunks(index, operation, strip)

    def _may_alternate(self, run: range) -> bool:
        """Whether the activation unit can go from one operation to another and back without loading anything again."""
        loads = sum(-(-self.constants.sets[index] // self.plan.staging.load_sets) for index in run)
        tables = sum(has_table(self.plan.network.operations[index].result) for index in run)
        return loads <= self.config.parameter_sets // self.plan.staging.load_sets and tables <= TABLES
