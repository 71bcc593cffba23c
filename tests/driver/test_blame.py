"""The instruction that caused a failure is found."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.isa import Register, Unit, format_named, register_format
from openmxu.arch.registers import BusPort
from openmxu.driver.blame import accessing_instruction, fetched, oldest_unfinished

CONFIG = Config(size=4, activation_lanes=2)
READ, WRITE = format_named("Read_Host_Memory"), format_named("Write_Host_Memory")
STRIDED, WEIGHTS = format_named("Read_Host_Memory_Alternate"), format_named("Read_Weights")
MULTIPLY, HALT = format_named("MatrixMultiply"), format_named("Halt")()
STRIDE = format_named("Set_Configuration")(
    register=Register.HOST_STRIDE, value=register_format(Register.HOST_STRIDE).pack(stride=64)
)
PROGRAM = (
    READ(rows=4),
    WEIGHTS(tiles=2),
    STRIDE,
    STRIDED(rows=3, host=256),
    MULTIPLY(rows=4, next_tile=1),
    WEIGHTS(tiles=1, weights=64),
    WRITE(rows=2, host=256),
    HALT,
)


def test_accesses() -> None:
    def culprit(port: BusPort, address: int, begin: int = 0, program=PROGRAM) -> int | None:
        return accessing_instruction(CONFIG, program, port, begin, address, 4)

    assert [culprit(BusPort.HOST_READ, address) for address in (0, 12, 16, 252, 253, 256, 384, 387, 388)] == [
        *(0, 0, None, None, 3, 3, 3, 3, None)
    ]
    assert [culprit(BusPort.HOST_WRITE, address) for address in (0, 256, 263, 264)] == [None, 6, 6, None]
    assert [culprit(BusPort.WEIGHTS, address) for address in (0, 31, 32, 64, 80)] == [1, 1, None, 5, None]
    assert culprit(BusPort.HOST_READ, 0, begin=8, program=PROGRAM + PROGRAM) == 8
    assert culprit(BusPort.HOST_READ, 256, program=(READ(), *PROGRAM)) is None, "nothing runs after a fault"


def test_fetched() -> None:
    assert [fetched(PROGRAM, tiles) for tiles in range(5)] == [0, 0, 1, 2, 2]


def test_oldest_unfinished() -> None:
    done = {Unit.HOST_READ: 2, Unit.WEIGHT: 2, Unit.MATRIX: 1, Unit.HOST_WRITE: 1, Unit.ACTIVATION: 0}
    assert oldest_unfinished(PROGRAM, done, 7) == 7
    assert oldest_unfinished(PROGRAM, done | {Unit.HOST_READ: 1, Unit.MATRIX: 0}, 7) == 3
    assert oldest_unfinished(PROGRAM, done | {Unit.MATRIX: 0}, 7) == 4
    assert oldest_unfinished(PROGRAM, done | {Unit.MATRIX: 0}, 4) == 4
    assert oldest_unfinished(PROGRAM, done | {Unit.WEIGHT: 0}, 3) == 1
