"""SCALE-Sim 3 as a peer: an array that keeps weights in place, memories that always answer, nothing behind the sums."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from scalesim.scale_sim import scalesim

from scripts.peers.table import Shape

__all__ = ["cycles"]

_CONFIGURATION = """\
[general]
run_name = run
[architecture_presets]
ArrayHeight: {size}
ArrayWidth: {size}
IfmapSramSzkB: 65536
FilterSramSzkB: 65536
OfmapSramSzkB: 65536
IfmapOffset: 0
FilterOffset: 100000000
OfmapOffset: 200000000
Bandwidth: 8
Dataflow: ws
MemoryBanks: 1
ReadRequestBuffer: 512
WriteRequestBuffer: 512
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""
"""On-chip memories that hold every product, and the bandwidth that never makes the array wait."""


def cycles(size: int, shapes: Sequence[Shape]) -> list[int]:
    """Cycles of matrix products on an array of ``size`` × ``size``, without those that bring the first data."""
    with tempfile.TemporaryDirectory() as folder:
        configuration, products = Path(folder, "scale.cfg"), Path(folder, "products.csv")
        configuration.write_text(_CONFIGURATION.format(size=size))
        lines = ["Layer,M,N,K,", *(f"{index},{m},{n},{k}," for index, (m, k, n) in enumerate(shapes))]
        products.write_text("".join(f"{line}\n" for line in lines))
        # It prints a progress bar for every product, and warnings of numpy's.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            simulation = scalesim(
                save_disk_space=True,
                verbose=False,
                config=str(configuration),
                topology=str(products),
                layout=str(products),
                input_type_gemm=True,
            )
            simulation.run_scale(top_path=folder)
        with Path(folder, "run", "COMPUTE_REPORT.csv").open() as report:
            rows = list(csv.DictReader(report, skipinitialspace=True))
    return [int(float(row["Total Cycles"])) for row in rows]
