"""The rules that have been proved, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from tb.formal.axi.ports import Port
from tb.formal.proof import Proof

__all__ = ["rules_table"]


def rules_table(proofs: Sequence[Proof], broken: Sequence[Proof]) -> str:
    """Markdown: each rule with its section in the specification, the channels for which it is proved, and how.

    Parameters
    ----------
    proofs
        The proofs that were run; those of ports are used.
    broken
        Those of them that failed.
    """
    channels: dict[tuple[str, str], list[str]] = {}
    violated: dict[tuple[str, str], int] = {}
    for proof in proofs:
        if not isinstance(proof, Port):
            continue
        for rule in proof.rules:
            channel, _, text = rule.text.partition(": ")
            channels.setdefault((text, rule.section), []).append(f"{channel} ({proof.port})")
            violated[text, rule.section] = violated.get((text, rule.section), 0) + (proof in broken)
    if not channels:
        return ""
    rows = [
        f"| {text} | {section} | {', '.join(names)} | induction | {violated[text, section]} |"
        for (text, section), names in channels.items()
    ]
    head = "| rule | section | channels (port) | proved by | violations |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *rows])
