"""Clock domains of a component with a core in a shell."""

from amaranth.hdl import ClockDomain, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Target
from openmxu.rtl.shell.shell_core import CORE_DOMAIN

__all__ = ["Clocked", "make_domains"]


def make_domains(m: Module) -> ClockDomain:
    """Add the clock domains that a shell needs, ``sync`` and that of its core; returns ``sync``.

    Both have one clock signal. Were the second one assigned from the first, Amaranth's simulator would have its edges a
    step later, when flip-flops of ``sync`` have changed already.
    """
    m.domains.sync = sync = ClockDomain("sync")
    core = ClockDomain(CORE_DOMAIN)
    core.clk = sync.clk
    m.domains.core = core
    return sync


class Clocked(wiring.Component):
    """A component with a shell in it, and the clock domains that it needs.

    Parameters
    ----------
    shell
        Such a component; its members are members here as well.

    Members
    -------
    clk, rst
        Clock, and reset, active high and synchronous.
    """

    def __init__(self, shell: wiring.Component) -> None:
        self._shell = shell
        super().__init__({"clk": In(1), "rst": In(1), **dict(shell.signature.members)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sync = make_domains(m)
        m.submodules.shell = shell = self._shell
        reset = self.rst
        modules = Target.of(platform).modules
        if modules is not None and modules.loops:
            # See register_reset in openmxu.rtl.simulation.sleeping_units.
            reset = Signal(name="registered_reset", reset_less=True)
            m.d.sync += reset.eq(self.rst)
        m.d.comb += [sync.clk.eq(self.clk), sync.rst.eq(reset)]
        members = shell.signature
        for (_, member, outside), (_, _, inside) in zip(members.flatten(self), members.flatten(shell), strict=True):
            source, target = (inside, outside) if member.flow is Out else (outside, inside)
            if not isinstance(Value.cast(target), Const):
                m.d.comb += target.eq(source)
        return m
