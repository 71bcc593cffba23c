"""AXI4-Lite subordinate: each access is made once, in the order of its kind, and answered with its result."""

import random

import cocotb

from openmxu.arch.registers import ADDRESS_WIDTH
from openmxu.rtl.axi.channels import LiteSignature
from openmxu.rtl.shell.interfaces import access_layout
from tb.bench import STALLS, Bench
from tb.models.payloads import pack, unpack

ACCESSES = 120
OKAY, SLVERR = 0, 2

_CHANNELS = {
    name: member.signature.members["payload"].shape for name, member in LiteSignature(ADDRESS_WIDTH).members.items()
}


@cocotb.test()
@STALLS
async def accesses(dut, idle, backpressure):
    bench = await Bench.start(dut, "lite_subordinate")
    aw, w, ar = (bench.source(f"bus__{name}", idle) for name in ("aw", "w", "ar"))
    b, r = (bench.sink(f"bus__{name}", backpressure) for name in ("b", "r"))
    responses = bench.source("responses", idle)
    answers = []

    def answer(payload):
        if not unpack(access_layout(ADDRESS_WIDTH), payload).write:
            answers.append(random.getrandbits(32))
            responses.send(answers[-1])

    requests = bench.sink("requests", backpressure, on_transfer=answer)
    writes, reads, replies = [], [], []
    for _ in range(ACCESSES):
        address = random.randrange(1 << ADDRESS_WIDTH)
        if random.random() < 0.5:
            value, strobe = random.getrandbits(32), random.choice([0xF, 0xF, 0, random.randrange(16)])
            aw.send(pack(_CHANNELS["aw"], {"addr": address}))
            w.send(pack(_CHANNELS["w"], {"data": value, "strb": strobe}))
            if strobe == 0xF:
                writes.append((address // 4, value))
            replies.append(OKAY if strobe in (0, 0xF) else SLVERR)
        else:
            ar.send(pack(_CHANNELS["ar"], {"addr": address}))
            reads.append(address // 4)
    await bench.until(lambda: len(b.received) == len(replies) and len(r.received) == len(reads))
    await bench.steps(5)
    got = [unpack(access_layout(ADDRESS_WIDTH), payload) for payload in requests.received]
    assert [(access.word, access.data) for access in got if access.write] == writes
    assert [access.word for access in got if not access.write] == reads
    assert [unpack(_CHANNELS["b"], payload).resp for payload in b.received] == replies
    beats = [unpack(_CHANNELS["r"], payload) for payload in r.received]
    assert [(beat.data, beat.resp) for beat in beats] == [(value, OKAY) for value in answers]
    # Neither kind of access has to wait until all of the other kind are done.
    kinds = [access.write for access in got[: ACCESSES // 2]]
    assert 0.2 < sum(kinds) / len(kinds) < 0.8
