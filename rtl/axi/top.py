"""Top module: the AXI shell with the port names that tools recognize."""

from collections.abc import Iterator

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.axi.shell import Shell
from openmxu.rtl.shell.clocked import make_domains

__all__ = ["TOP", "Top"]

TOP = "openmxu_axi"
"""Name of the top module."""

_INCR = 1
_MODIFIABLE = 0b0011  # normal memory, not cacheable, bufferable: interconnects may merge and split bursts
_CONTROL = "s_axi"
_HOST = "m_axi_host"
_WEIGHTS = "m_axi_weight"
_INTERFACES = ":".join((_CONTROL, _HOST, _WEIGHTS))


class Top(wiring.Component):
    """The shell in one clock domain, with a separate port for each signal of a channel, such as ``m_axi_host_araddr``.

    Parameters
    ----------
    config, outstanding
        Those of the shell.

    Members
    -------
    aclk, aresetn
        Clock, and reset, active low and synchronous.
    irq
        High while an enabled interrupt is pending.
    s_axi_<signal>
        AXI4-Lite subordinate: registers.
    m_axi_host_<signal>
        AXI4 manager: host memory.
    m_axi_weight_<signal>
        AXI4 manager: weight memory, read channels only.
    """

    def __init__(self, config: Config, *, outstanding: int = 16) -> None:
        self._config = config
        self._shell = Shell(config, outstanding=outstanding)
        members: dict[str, wiring.Member] = {"aclk": In(1), "aresetn": In(1), "irq": Out(1)}
        for prefix, channel, is_output in self._channels():
            forwards, backwards = (Out, In) if is_output else (In, Out)
            members[f"{prefix}valid"] = forwards(1)
            members[f"{prefix}ready"] = backwards(1)
            for name, field in channel.p.shape():
                members[f"{prefix}{name}"] = forwards(field.shape)
            for name, (width, _) in self._constants(prefix).items():
                members[f"{prefix}{name}"] = forwards(width)
        super().__init__(members)
        # Vivado cannot infer these from the names of ports.
        self.aclk.attrs["X_INTERFACE_PARAMETER"] = f"ASSOCIATED_BUSIF {_INTERFACES}, ASSOCIATED_RESET aresetn"
        self.irq.attrs["X_INTERFACE_INFO"] = "xilinx.com:signal:interrupt:1.0 irq INTERRUPT"

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def _channels(self) -> Iterator[tuple[str, stream.Interface, bool]]:
        """For every channel: prefix of the ports, stream, and whether the shell drives it."""
        shell = self._shell
        for prefix, signature, interface in (
            (_CONTROL, shell.signature.members["control"].signature, shell.control),
            (_HOST, shell.signature.members["host_write"].signature, shell.host_write),
            (_HOST, shell.signature.members["host_read"].signature, shell.host_read),
            (_WEIGHTS, shell.signature.members["weights"].signature, shell.weights),
        ):
            for name, member in signature.members.items():
                yield f"{prefix}_{name}", getattr(interface, name), member.flow is Out

    def _constants(self, prefix: str) -> dict[str, tuple[int, int]]:
        """Width and value of a channel's signals that are constant, or not used."""
        interface, _, channel = prefix.rpartition("_")
        if interface == _CONTROL:
            return {"prot": (3, 0)} if channel in ("aw", "ar") else {}
        if channel in ("r", "b"):
            return {"id": (1, 0)}
        if channel == "w":
            return {}
        data_bytes = self.config.host_data_bytes if interface == _HOST else self.config.weight_data_bytes
        return {
            "id": (1, 0),
            "size": (3, ceil_log2(data_bytes)),
            "burst": (2, _INCR),
            "lock": (1, 0),
            "cache": (4, _MODIFIABLE),
            "prot": (3, 0),
            "qos": (4, 0),
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        domain = make_domains(m)
        m.submodules.shell = shell = self._shell
        m.d.comb += [domain.clk.eq(self.aclk), domain.rst.eq(~self.aresetn), self.irq.eq(shell.interrupt)]
        for prefix, channel, is_output in self._channels():
            valid, ready = getattr(self, f"{prefix}valid"), getattr(self, f"{prefix}ready")
            for name, _ in channel.p.shape():
                port = getattr(self, f"{prefix}{name}")
                m.d.comb += port.eq(channel.p[name]) if is_output else channel.p[name].eq(port)
            if is_output:
                m.d.comb += [valid.eq(channel.valid), channel.ready.eq(ready)]
                m.d.comb += [
                    getattr(self, f"{prefix}{name}").eq(value) for name, (_, value) in self._constants(prefix).items()
                ]
            else:
                m.d.comb += [channel.valid.eq(valid), ready.eq(channel.ready)]
        return m
