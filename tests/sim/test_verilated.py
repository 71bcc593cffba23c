"""The Verilated device with a stand-in for the core: memories, stalls, faults, hangs and waveforms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from openmxu.arch.events import Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, format_named
from openmxu.device import DeviceError, DeviceFault, DeviceHang
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator import BusError
from openmxu.sim.verilator.library import Port
from tests.sim.stand_in import CONFIG, DESIGN

HALT = format_named("halt")()
NOP = format_named("nop")()
HANG = format_named("synchronize")()
ILLEGAL = Instruction(0xEE)


def copy(source: int, beats: int, destination: int) -> Instruction:
    """Copy beats of host memory; ``destination`` is the number of a beat."""
    return format_named("read_host_memory")(host=source, rows=beats, unified_buffer=destination)


def copy_weights(source: int, beats: int) -> Instruction:
    """Copy beats of weight memory to the start of host memory."""
    return format_named("read_weights")(weights=source, tiles=beats)


def copy_beats(source: int, beats: int) -> Instruction:
    """Copy beats of host memory to its second half."""
    return copy(source, beats, 2000)


def tagged(name: str, tag: int) -> Instruction:
    return format_named(name)(tag=tag)


def memories(seed: int = 0, host: int = 1024, weights: int = 256) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, host, np.uint8), random.integers(0, 256, weights, np.uint8)


@pytest.fixture
def device():
    with VerilatedDevice(CONFIG, design=DESIGN, watchdog=500) as device:
        yield device


PROGRAM = (
    copy(64, 9, 100),
    NOP,
    copy_weights(16, 5),
    tagged("debug_tag", 7),
    copy(0, 3, 20),
    tagged("host_synchronize", 8),
    copy(160, 64, 30),
    HALT,
)


def run_program(device: VerilatedDevice, seed: int = 0) -> list[Event]:
    """Run ``PROGRAM`` and check all of its effects on the memories."""
    host, weights = memories(seed)
    expected, expected_weights = host.copy(), weights.copy()
    expected[800:872] = expected[64:136]
    expected[:40] = weights[16:56]
    expected[160:184] = expected[:24]
    expected[240:752] = expected[160:672].copy()
    events = device.execute(PROGRAM, host, weights)
    np.testing.assert_array_equal(host, expected)
    np.testing.assert_array_equal(weights, expected_weights)
    return events


def test_bursts_reach_the_memories(device):
    events = run_program(device)
    assert events == [
        Event(EventKind.DEBUG_TAG, 3, tag=7),
        Event(EventKind.HOST_SYNCHRONIZE, 5, tag=8),
        Event(EventKind.HALT, 7),
    ]
    assert device.cycles_per_second > 0


def test_programs_run_back_to_back(device):
    host, weights = memories()
    expected = np.concatenate([host[:40], host[:40], host[80:]])
    assert device.execute([HALT, copy(0, 5, 5), HALT], host, weights) == [
        Event(EventKind.HALT, 0),
        Event(EventKind.HALT, 1),
    ]
    np.testing.assert_array_equal(host, expected)


@pytest.mark.parametrize("stall_probability", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("memory_latency", [1, 30])
def test_stalls_and_latency_change_no_result(stall_probability, memory_latency):
    with VerilatedDevice(
        CONFIG, design=DESIGN, seed=3, stall_probability=stall_probability, memory_latency=memory_latency
    ) as device:
        for seed in range(5):
            run_program(device, seed)


def cycles(**options: object) -> int:
    with VerilatedDevice(CONFIG, design=DESIGN, **options) as device:
        run_program(device)
        return device._model.status().cycle


def test_a_seed_determines_the_run():
    runs = [cycles(seed=seed, stall_probability=0.4) for seed in (1, 1, 2, 3)]
    assert runs[0] == runs[1]
    assert len(set(runs)) == 3


def test_stalls_come_in_bursts():
    """The same share of the time in one burst: a stream that does not stall then stays so until the program ends."""
    free = cycles()
    one_by_one = [cycles(seed=seed, stall_probability=0.5) for seed in range(8)]
    in_bursts = [cycles(seed=seed, stall_probability=0.5, stall_cycles=1000) for seed in range(8)]
    assert min(one_by_one) > free
    assert max(in_bursts) > 2 * max(one_by_one)
    assert cycles(seed=1, stall_probability=0.5, stall_cycles=1000) == in_bursts[1]


def test_only_the_named_streams_stall():
    free = cycles()
    assert cycles(seed=1, stall_probability=0.9, stalled_ports=[]) == free
    # The management port is not used while the program runs.
    assert cycles(seed=1, stall_probability=0.9, stalled_ports=[Port.MANAGEMENT_RESPONSE]) - free < 200
    alone = {
        port: cycles(seed=1, stall_probability=0.9, stalled_ports=[port])
        for port in Port
        if port not in (Port.MANAGEMENT, Port.MANAGEMENT_RESPONSE)
    }
    assert min(alone.values()) > free
    assert cycles(seed=1, stall_probability=0.9) > max(alone.values())


def test_latency_delays_each_round_trip():
    # PROGRAM makes four reads and four writes, one after the other. The first cycle of latency is hidden by the request
    # of a write, so the comparison starts at 2.
    assert cycles(memory_latency=22) - cycles(memory_latency=2) == 20 * 8


def test_beats_follow_without_a_gap(device):
    host, weights = memories(host=32768)
    before = device._model.status().cycle
    device.execute([copy(0, 1000, 2000), HALT], host, weights)
    short = device._model.status().cycle - before
    device.execute([copy(0, 2000, 2000), HALT], host, weights)
    assert device._model.status().cycle - before - 2 * short == 1000


def duration(instruction: Instruction, **options: object) -> int:
    """Cycles of a copy."""
    with VerilatedDevice(CONFIG, design=DESIGN, **options) as device:
        before = device._model.status().cycle
        device.execute([instruction, HALT], *memories(host=32768, weights=32768))
        return device._model.status().cycle - before


@pytest.mark.parametrize(
    ("rate", "cycles_per_beat"),
    [(8, 1), (100, 1), (4, 2), (1, 8), (Fraction(16, 3), Fraction(3, 2)), (Fraction(100, 13), Fraction(26, 25))],
)
@pytest.mark.parametrize("copies", [copy_beats, copy_weights])
def test_rates(rate, cycles_per_beat, copies):
    """A beat of eight bytes takes 8 ÷ rate cycles, if that is more than one."""
    short, long = (duration(copies(0, beats), host_rate=rate, weight_rate=rate) for beats in (1000, 2000))
    assert long - short == 1000 * cycles_per_beat


def test_each_memory_has_its_rate():
    free = cycles()
    host, weights = cycles(host_rate=1), cycles(weight_rate=1)
    assert free < weights < host
    assert cycles(host_rate=1, weight_rate=1) == host


def test_both_directions_of_the_host_have_all_of_the_rate():
    """A copy of host memory takes as long as one of weights, which is only written there."""
    assert duration(copy_beats(0, 1000), host_rate=4) == duration(copy_weights(0, 1000), host_rate=4) + 1


def test_rates_and_stalls_change_no_result():
    with VerilatedDevice(
        CONFIG, design=DESIGN, seed=5, stall_probability=0.3, host_rate=3, weight_rate=Fraction(1, 50)
    ) as device:
        for seed in range(5):
            run_program(device, seed)


def test_a_slow_memory_is_no_hang():
    """The watchdog waits for beats that take longer than its limit of 50,000 cycles."""
    assert cycles(weight_rate=Fraction(8, 60_000)) > 240_000


def test_counters(device):
    host, weights = memories()
    device.execute([NOP, copy(0, 6, 6), HALT], host, weights)
    assert device.counters[Counter.HOST_READ_BYTES] == 48
    assert device.counters[Counter.RETIRED_OTHER] == 3
    assert set(device.counters) == set(Counter)
    device.clear_counters()
    assert device.counters[Counter.RETIRED_OTHER] == 0


def test_windows_end_with_the_memories(device):
    device.execute([HALT], *memories(host=777))
    assert device.counters[Counter.HOST_READ_BUSY] == 777  # the stand-in shows HOST_LIMIT here


def test_snapshot_reads_the_memories(device):
    host, weights = memories()
    rows = host[:128].reshape(16, 8).copy()
    device.execute([copy(0, 16, 64), HALT], host, weights)
    snapshot = device.snapshot()
    assert snapshot.unified_buffer.shape == (CONFIG.unified_buffer_rows, CONFIG.size)
    np.testing.assert_array_equal(snapshot.unified_buffer[:16], rows)
    assert not snapshot.unified_buffer[16:].any()
    assert snapshot.accumulators.dtype == np.int32
    np.testing.assert_array_equal(snapshot.accumulators, rows.view(np.int8))


def test_memories_survive_a_reset(device):
    device.execute([copy(0, 16, 64), HALT], *memories())
    before = device.snapshot()
    device.reset()
    np.testing.assert_array_equal(device.snapshot().unified_buffer, before.unified_buffer)


def test_fault_names_the_instruction_and_leaves_the_device_ready(device):
    host, weights = memories()
    program = [NOP, HALT, copy(0, 1, 2), NOP, ILLEGAL, copy(0, 1, 3), HALT, NOP, HALT]
    expected = host.copy()
    expected[16:24] = host[:8]
    with pytest.raises(DeviceFault, match=r"instruction 2 \(\S.*\): UNKNOWN_OPCODE") as caught:
        device.execute(program, host, weights)
    fault = caught.value
    assert (fault.code, fault.index, fault.instruction) == (FaultCode.UNKNOWN_OPCODE, 2, ILLEGAL)
    assert fault.events == [Event(EventKind.HALT, 1), Event(EventKind.FAULT, 2, fault=FaultCode.UNKNOWN_OPCODE)]
    np.testing.assert_array_equal(host, expected)
    run_program(device)


def test_fault_under_stalls():
    with VerilatedDevice(CONFIG, design=DESIGN, seed=9, stall_probability=0.7) as device:
        for _ in range(20):
            with pytest.raises(DeviceFault):
                device.execute([copy(0, 8, 9), ILLEGAL, *[copy(0, 1, 4)] * 10, HALT], *memories())
        run_program(device)


def test_hang_names_unit_and_port_and_reset_recovers(device):
    with pytest.raises(DeviceHang, match="500 cycles; busy units: matrix; instructions is offered and not taken"):
        device.execute([NOP, HANG, HALT], *memories())
    with pytest.raises(DeviceError, match=r"the device hung; call reset\(\) first"):
        device.execute([HALT], *memories())
    device.reset()
    run_program(device)


def test_a_silent_management_port_is_a_hang(device):
    with pytest.raises(DeviceHang, match="the management port did not answer for 500 cycles"):
        device.execute([format_named("synchronize")(units=1), HALT], *memories())
    device.reset()
    run_program(device)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (copy(1016, 2, 0), r"host_read_request: a burst reaches outside the memory \(2 beats at address 0x3f8\)"),
        (copy(1 << 31, 1, 0), "host_read_request: a burst reaches outside"),
        (copy(0, 5, 124), r"host_write_request: a burst reaches outside the memory \(5 beats at address 0x3e0\)"),
        (copy_weights(256, 1), "weights_request: a burst reaches outside the memory"),
        (copy(4, 1, 0), "host_read_request: the address of a burst is no multiple of a beat"),
        (copy_weights(0, 0), "weights_request: a burst has no beats"),
    ],
)
def test_broken_bus_rules_are_errors(device, instruction, message):
    host, weights = memories()
    with pytest.raises(BusError, match=message):
        device.execute([instruction, HALT], host, weights)
    device.reset()
    run_program(device)


def test_strobes_beyond_the_end_are_errors(device):
    host, weights = memories(host=252)  # the last beat is half inside
    with pytest.raises(BusError, match="host_write_data: a strobe selects a byte behind the end"):
        device.execute([copy(0, 1, 31), HALT], host, weights)


def test_valid_must_not_be_withdrawn():
    with (
        VerilatedDevice(CONFIG, design=DESIGN, stall_probability=0.9) as device,
        pytest.raises(BusError, match="events: valid was withdrawn"),
    ):
        device.execute([format_named("interrupt_host")()] * 20 + [HALT], *memories())


def test_a_program_must_end_with_halt(device):
    with pytest.raises(ValueError, match="must end with Halt"):
        device.execute([NOP], *memories())


def test_memories_must_be_vectors_of_bytes(device):
    host, weights = memories()
    with pytest.raises(ValueError, match="host_memory must be a contiguous uint8 vector"):
        device.execute([HALT], host[::2], weights)
    with pytest.raises(ValueError, match="weight_memory must be a contiguous uint8 vector"):
        device.execute([HALT], host, weights.view(np.int8))
    host.flags.writeable = False
    with pytest.raises(ValueError, match="host_memory must be writeable"):
        device.execute([HALT], host, weights)


def test_memories_may_be_empty(device):
    nothing = np.zeros(0, np.uint8)
    assert device.execute([NOP, HALT], nothing, nothing) == [Event(EventKind.HALT, 1)]


def test_a_closed_device_raises_an_error(device):
    device.close()
    with pytest.raises(DeviceError, match="the device is closed"):
        device.execute([HALT], *memories())


@pytest.mark.parametrize("first_closed", [0, 1])
def test_devices_close_in_any_order(first_closed):
    devices = [VerilatedDevice(CONFIG, design=DESIGN) for _ in range(2)]
    devices[first_closed].close()
    run_program(devices[1 - first_closed])
    devices[1 - first_closed].close()


def test_two_devices_do_not_share_state(device):
    host, weights = memories()
    with VerilatedDevice(CONFIG, design=DESIGN) as other:
        other.execute([copy(0, 16, 64), HALT], host, weights)
        assert other.snapshot().unified_buffer.any()
    assert not device.snapshot().unified_buffer.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stall_probability": 1.0}, "stall_probability must be at least 0 and less than 1, not 1.0"),
        ({"stall_cycles": 0}, "stall_cycles must be from 1 to 2\\*\\*16, not 0"),
        ({"memory_latency": 0}, "memory_latency must be at least 1 cycle, not 0"),
        ({"host_rate": 0}, "host_rate must be positive, not 0"),
        ({"weight_rate": Fraction(-1, 2)}, "weight_rate must be positive, not -1/2"),
        (
            {"weight_rate": Fraction(1, 1 << 40)},
            "weight_rate must be a fraction of smaller numbers, not 1/1099511627776",
        ),
        ({"watchdog": 0}, "watchdog must be at least 1 cycle, not 0"),
        ({"seed": -1}, "seed must be from 0"),
        ({"waveform": "wave.txt"}, "must end with .vcd or .fst, not 'wave.txt'"),
        ({"waveform": "/nowhere/at/all/wave.vcd"}, "the folder of the waveform file does not exist"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        VerilatedDevice(CONFIG, design=DESIGN, **options)


def test_a_rate_is_exact():
    with pytest.raises(TypeError, match=r"host_rate must be an int or a Fraction, not 0\.5"):
        VerilatedDevice(CONFIG, design=DESIGN, host_rate=0.5)


def test_waveform_that_cannot_be_written(tmp_path):
    (tmp_path / "folder.vcd").mkdir()
    with pytest.raises(ValueError, match=r"the waveform file is a folder: .*folder\.vcd"):
        VerilatedDevice(CONFIG, design=DESIGN, waveform=tmp_path / "folder.vcd")
    # A dangling link: even root cannot create its target.
    (tmp_path / "wave.vcd").symlink_to(tmp_path / "missing" / "wave.vcd")
    with pytest.raises(FileNotFoundError, match=r"wave\.vcd"):
        VerilatedDevice(CONFIG, design=DESIGN, waveform=tmp_path / "wave.vcd")


def test_vcd_waveform_has_the_signals_of_the_run(tmp_path):
    path = tmp_path / "wave.vcd"
    with VerilatedDevice(CONFIG, design=DESIGN, waveform=path) as device:
        run_program(device)
        last = 2 * device._model.status().cycle - 1
    text = path.read_text()
    assert "host_read__request__payload" in text
    assert f"#{last}\n" in text


def test_waveform_of_some_cycles(tmp_path):
    path = tmp_path / "wave.vcd"
    with VerilatedDevice(CONFIG, design=DESIGN, waveform=path, waveform_cycles=(10, 14)) as device:
        run_program(device)
    times = [int(line[1:]) for line in path.read_text().splitlines() if line.startswith("#")]
    assert times == list(range(20, 30))


@pytest.mark.parametrize("cycles", [(3, 2), (-1, 4)])
def test_waveform_of_impossible_cycles(tmp_path, cycles):
    with pytest.raises(ValueError, match="the first and the last cycle"):
        VerilatedDevice(CONFIG, design=DESIGN, waveform=tmp_path / "wave.vcd", waveform_cycles=cycles)
