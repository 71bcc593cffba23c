"""Command queues: one for each unit; a command leaves when no older instruction conflicts with it."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.dispatch.command_queue import CommandQueue
from openmxu.rtl.dispatch.commands import activation_start, host_command, matrix_command, write_command
from openmxu.rtl.dispatch.scoreboard import QueuedUnit, Scoreboard, access_layout

__all__ = ["CommandQueues"]


class CommandQueues(wiring.Component):
    """The scoreboard with the commands of its instructions.

    Members
    -------
    unit, access, transfer, multiplication, activation_work
        The next instruction, with the command for its unit. The command is held until the cycle after ``push``, the
        others a cycle longer.
    compare, push, full
        See ``compare``, ``allocate`` and ``full`` of :class:`~openmxu.rtl.dispatch.scoreboard.Scoreboard`; ``push``
        queues the command as well.
    host_read, host_write, matrix, activation
        Commands that may start.
    done
        One bit for each unit: its oldest instruction has finished.
    busy, matrix_waits
        See :class:`~openmxu.rtl.dispatch.scoreboard.Scoreboard`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        units = len(QueuedUnit)
        super().__init__(
            {
                "unit": In(QueuedUnit),
                "access": In(access_layout(config)),
                "compare": In(1),
                "push": In(units),
                "transfer": In(write_command(config)),
                "multiplication": In(matrix_command(config)),
                "activation_work": In(activation_start(config)),
                "host_read": Out(stream.Signature(host_command(config))),
                "host_write": Out(stream.Signature(write_command(config))),
                "matrix": Out(stream.Signature(matrix_command(config))),
                "activation": Out(stream.Signature(activation_start(config))),
                "done": In(units),
                "full": Out(units),
                "busy": Out(units),
                "matrix_waits": Out(units),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scoreboard = scoreboard = Scoreboard(self._config)
        m.d.comb += [
            scoreboard.compare.eq(self.compare),
            scoreboard.unit.eq(self.unit),
            scoreboard.access.eq(self.access),
            scoreboard.allocate.eq(self.push),
            scoreboard.done.eq(self.done),
            self.full.eq(scoreboard.full),
            self.busy.eq(scoreboard.busy),
            self.matrix_waits.eq(scoreboard.matrix_waits),
        ]
        read = host_command(self._config)
        commands = {
            QueuedUnit.HOST_READ: (read(Value.cast(self.transfer)[: read.size]), self.host_read),
            QueuedUnit.HOST_WRITE: (self.transfer, self.host_write),
            QueuedUnit.MATRIX: (self.multiplication, self.matrix),
            QueuedUnit.ACTIVATION: (self.activation_work, self.activation),
        }
        started = []
        for unit, (command, output) in commands.items():
            name = unit.name.lower()
            m.submodules[f"queue_{name}"] = queue = CommandQueue(command.shape(), self._config.command_queue_depth)
            m.d.comb += [
                queue.command.eq(command),
                queue.push.eq(self.push[unit.value]),
                output.payload.eq(queue.oldest),
            ]
            # `offered` falls two cycles after the handshake, which is known late in a cycle and comes from across the
            # chip; in the cycle between, `take` shows that the command is gone.
            may_start = scoreboard.startable[unit.value]
            offered = Signal(name=f"offered_{name}")
            m.d.comb += output.valid.eq(offered & ~queue.take)
            m.d.sync += [
                queue.take.eq(output.valid & output.ready),
                offered.eq(may_start | (offered & ~queue.take)),
            ]
            started.append(may_start & (~offered | queue.take))
        # A cycle later, which shortens the path: a unit is offered no other command in that cycle.
        m.d.sync += scoreboard.started.eq(Cat(started))
        return m
