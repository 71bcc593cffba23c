"""``openmxu run`` and ``openmxu compile``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from openmxu import Program
from openmxu.exact_session import exact_session
from tests.cli.small_models import K, N, write_dense_model
from tests.compiler.models.host_models import embedding, random_inputs
from tests.compiler.models.open_models import open_model


@pytest.fixture
def folder(tmp_path) -> Path:
    """``model.onnx``, inputs for it in ``x.npy``, and ONNX Runtime's outputs in ``expected.npy``."""
    write_dense_model(tmp_path / "model.onnx")
    inputs = np.random.default_rng(2).integers(0, 256, (100, K)).astype(np.uint8)
    np.save(tmp_path / "x.npy", inputs)
    session = exact_session(tmp_path / "model.onnx")
    np.save(tmp_path / "expected.npy", session.run(None, {"x": inputs})[0])
    return tmp_path


def outputs_in(folder: Path) -> set[str]:
    """Files that commands have added to the folder."""
    return {path.name for path in folder.iterdir()} - {"model.onnx", "x.npy", "expected.npy"}


def assert_equals_expected(folder: Path, name: str) -> None:
    np.testing.assert_array_equal(np.load(folder / name), np.load(folder / "expected.npy"), strict=True)


@pytest.mark.parametrize("options", [[], ["--size", "2"], ["--preset", "medium"], ["--batch", "7"]])
def test_run_computes_what_onnx_runtime_computes(openmxu, folder, options):
    result = openmxu("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", *options)
    assert (result.status, result.stderr) == (0, "")
    assert outputs_in(folder) == {"y.npy"}
    assert_equals_expected(folder, "y.npy")


def test_run_reports_as_json(openmxu, folder):
    report = openmxu("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", "--size", 4, "--json").json
    assert report["device"] == "interpreter"
    assert report["size"] == 4
    assert report["outputs"] == [{"name": "y", "shape": [100, N], "type": "uint8"}]
    assert report["multiply_adds"] == 100 * K * N
    assert report["cycles"] is None


def test_run_replaces_its_output_and_keeps_its_permissions(openmxu, folder):
    (folder / "y.npy").write_bytes(b"previous")
    (folder / "y.npy").chmod(0o640)
    assert openmxu("run", "model.onnx", "--input", "x.npy", "--output", "y.npy").status == 0
    assert_equals_expected(folder, "y.npy")
    assert (folder / "y.npy").stat().st_mode & 0o777 == 0o640


def test_compiled_program_runs_and_disassembles(openmxu, folder):
    facts = openmxu("compile", "model.onnx", "--size", 4, "--batch", 32, "-o", "model.mxu", "--json").json
    assert (facts["size"], facts["batch"]) == (4, 32)
    assert openmxu("run", "model.mxu", "--input", "x.npy", "--output", "y.npy").status == 0
    assert_equals_expected(folder, "y.npy")
    program = Program.load(folder / "model.mxu")
    assert openmxu("disassemble", "model.mxu").stdout == program.disassemble()
    numbered = openmxu("disassemble", "model.mxu", "--numbers").stdout.splitlines()
    assert [int(line.partition("  # ")[2].split()[0]) for line in numbered] == list(range(len(program.instructions)))
    assert {line.partition("  # ")[2].partition(" ")[2] for line in numbered} >= {
        layer.name for layer in program.layers
    }


def test_host_parts_are_reported_and_run(openmxu, folder):
    """A model with tokens as input, parts for the host at its beginning and end, and several outputs."""
    model = embedding()
    onnx.save(model, folder / "embedding.onnx")
    inputs = random_inputs(model, 3)
    np.save(folder / "tokens.npy", inputs["tokens"])
    np.savez(folder / "tokens.npz", **inputs)
    facts = openmxu("compile", "embedding.onnx", "-o", "embedding.mxu", "--json").json
    assert facts["device_share"] == 1
    assert [(segment["where"], segment["nodes"]) for segment in facts["segments"]] == [
        ("host", ["words (Gather)", "scaled (Mul)"]),
        ("device", ["sums"]),
        ("host", ["y (Softmax)", "best (ArgMax)"]),
    ]
    text = openmxu("compile", "embedding.onnx", "-o", "embedding.mxu").stdout
    assert "segment 1            host: words (Gather), scaled (Mul), 0 multiply-adds\n" in text
    session = exact_session(folder / "embedding.onnx")
    expected = session.run(["best", "h"], inputs)
    for source in ("tokens.npy", "tokens.npz"):
        openmxu("run", "embedding.mxu", "--input", source, "--output", "y.npy").failed(
            2, "embedding.mxu has the outputs y, best, h: --output must be an .npz file"
        )
        report = openmxu("run", "embedding.mxu", "--input", source, "--output", "y.npz", "--json").json
        assert [item["name"] for item in report["outputs"]] == ["y", "best", "h"]
        with np.load(folder / "y.npz") as archive:
            np.testing.assert_array_equal(archive["best"], expected[0], strict=True)
            np.testing.assert_array_equal(archive["h"], expected[1], strict=True)
    np.save(folder / "tokens.npy", np.full((1, 5), 1000))
    run = ("run", "embedding.mxu", "--input", "tokens.npy", "--output", "z.npz")
    openmxu(*run).failed(2, "tokens.npy: the host's part of the model (words (Gather), scaled (Mul)) failed")
    assert not (folder / "z.npz").exists()


def test_report(openmxu, folder):
    compile_ = ("compile", "model.onnx", "--size", 4, "--batch", 32)
    found = openmxu(*compile_, "-o", "model.mxu", "--report", "--json").json["report"]
    (layer,) = found["layers"]
    assert layer["name"] == "layer"
    assert layer["cycles"] == found["total"]["cycles"]
    assert layer["multiply_adds"] == 32 * K * N
    assert (found["size"], found["batch"], found["memory_latency"]) == (4, 32, 4)
    # A compiled program also contains its layers, and without --output nothing is written.
    assert openmxu("compile", "model.mxu", "--report", "--json").json["report"] == found
    assert outputs_in(folder) == {"model.mxu"}
    later = openmxu(*compile_, "--report", "--memory-latency", 50, "--json").json["report"]
    assert later["total"]["cycles"] > layer["cycles"]
    slow = openmxu(*compile_, "--report", "--host-rate", "0.5", "--weight-rate", "1/4", "--json").json["report"]
    assert slow["total"]["bound"] > later["total"]["bound"]
    assert (slow["host_rate"], slow["weight_rate"]) == (0.5, 0.25)


def test_report_as_text(openmxu, folder):
    onnx.save(embedding(), folder / "embedding.onnx")
    lines = openmxu("compile", "embedding.onnx", "--report").stdout.splitlines()
    (title,) = (number for number, line in enumerate(lines) if line.startswith("Predicted: array of 8 × 8, batch of "))
    header, *rows = (line.split() for line in lines[title + 1 :])
    assert header[:2] == ["layer", "kind"]
    assert "bound bound by ÷ cycles" in " ".join(header)
    assert [row[:2] for row in rows[:2]] == [["words", "(Gather)"], ["scaled", "(Mul)"]]
    assert {row[2] for row in rows[:2]} == {"host"}
    assert rows[-1][:2] == ["all", "layers"]
    assert len({len(line) for line in lines[title + 1 :]}) == 1


def test_report_needs_nothing_else(openmxu, folder):
    openmxu("compile", "model.onnx").failed(2, "there is nothing to do; give --output FILE, --report, or both")
    openmxu("compile", "model.onnx", "-o", "y.mxu", "--memory-latency", 9).failed(2, "--memory-latency needs --report")
    lite = ("--preset", "icebreaker", "--report")
    openmxu("compile", "model.onnx", "-o", "y.mxu", *lite).failed(
        2, "the cycle model does not know", "the profile lite"
    )
    assert outputs_in(folder) == set()
    openmxu("compile", "model.onnx", "-o", "y.mxu", "--size", 4)
    again = openmxu("compile", "y.mxu", "--export", "bin", "-o", "y.bin", "--host-rate", 9)
    again.failed(2, "--host-rate needs --report: y.mxu is compiled already")
    assert outputs_in(folder) == {"y.mxu"}


def test_compile_plans_for_rates(openmxu, folder):
    """A program for slow memories is another one, and computes the same."""
    for name, rates in (("fast.mxu", ()), ("slow.mxu", ("--host-rate", "1/2", "--weight-rate", "1/4"))):
        openmxu("compile", "model.onnx", "--size", 4, "--batch", 50, "-o", name, *rates)
    openmxu("run", "slow.mxu", "--input", "x.npy", "--output", "y.npy")
    assert_equals_expected(folder, "y.npy")
    fast, slow = (Program.load(folder / name).instructions for name in ("fast.mxu", "slow.mxu"))
    assert fast != slow


def test_a_report_is_of_the_effort_that_is_given(openmxu, folder):
    compile_ = ("compile", "model.onnx", "--size", 4, "--batch", 16, "--report", "--json")
    quick, usual = (openmxu(*compile_, *effort).json for effort in (("--effort", 0), ()))
    assert quick["report"]["total"]["cycles"] > usual["report"]["total"]["cycles"]
    assert quick == openmxu(*compile_, "--effort", 0, "-o", "quick.mxu").json
    for again in (("--report",), ("--export", "bin", "-o", "quick.bin")):
        openmxu("compile", "quick.mxu", *again, "--effort", 1).failed(
            2, "quick.mxu is compiled already: --effort needs a model"
        )


def test_options_may_not_contradict_a_compiled_program(openmxu, folder):
    assert openmxu("compile", "model.onnx", "--size", 4, "--batch", 32, "-o", "model.mxu").status == 0
    run = ("run", "model.mxu", "--input", "x.npy", "--output", "y.npy")
    openmxu(*run, "--size", 8).failed(2, "model.mxu is compiled already, for another configuration of size 4")
    openmxu(*run, "--batch", 8).failed(2, "model.mxu is compiled already, for a batch of 32")
    assert openmxu(*run, "--size", 4, "--batch", 32).status == 0


@pytest.mark.parametrize("length", [0, 1, 50, 150, 300])
def test_truncated_model_is_refused(openmxu, folder, length):
    (folder / "cut.onnx").write_bytes((folder / "model.onnx").read_bytes()[:length])
    openmxu("run", "cut.onnx", "--input", "x.npy", "--output", "y.npy").failed(2, "cut.onnx")
    assert outputs_in(folder) == {"cut.onnx"}


def test_truncated_program_is_refused(openmxu, folder):
    assert openmxu("compile", "model.onnx", "-o", "model.mxu").status == 0
    contents = (folder / "model.mxu").read_bytes()
    (folder / "model.mxu").write_bytes(contents[: len(contents) // 2])
    openmxu("run", "model.mxu", "--input", "x.npy", "--output", "y.npy").failed(2, "model.mxu")
    assert outputs_in(folder) == {"model.mxu"}


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.zeros((3, K), np.float32), "not float32"),
        (np.zeros((3, K), np.int8), "not int8"),
        (np.zeros((3, K + 1), np.uint8), f"not uint8 of shape (3, {K + 1})"),
        (np.zeros(K, np.uint8), f"of shape ({K},)"),
        (np.uint8(1), "of shape ()"),
    ],
)
def test_array_of_wrong_type_or_shape_is_refused(openmxu, folder, array, problem):
    np.save(folder / "bad.npy", array)
    run = ("run", "model.onnx", "--input", "bad.npy", "--output", "y.npy")
    openmxu(*run).failed(2, f"bad.npy: input 'x' must be uint8 of shape (batch, {K})", problem)
    assert outputs_in(folder) == {"bad.npy"}


def test_input_is_checked_before_the_simulation_is_built(openmxu, folder):
    """Without a compiler, the error is still that of the input; no waveform file is created either."""
    np.save(folder / "bad.npy", np.zeros((3, K), np.float32))
    run = ("run", "model.onnx", "--input", "bad.npy", "--output", "y.npy", "--device", "verilator")
    result = openmxu(*run, "--waveform", "y.vcd", environment={"PATH": str(folder)})
    result.failed(2, "bad.npy: input 'x' must be uint8", "not float32")
    assert outputs_in(folder) == {"bad.npy"}


def test_file_that_is_not_an_array_is_refused(openmxu, folder):
    run = ("run", "model.onnx", "--output", "y.npy", "--input")
    np.savez(folder / "bad.npz", z=np.zeros(3))
    openmxu(*run, "bad.npz").failed(2, "bad.npz: expected inputs named x; found z")
    (folder / "bad.npz").write_bytes((folder / "bad.npz").read_bytes()[:100])
    openmxu(*run, "bad.npz").failed(2, "bad.npz is no readable .npz file: File is not a zip file")
    np.save(folder / "bad.npz", np.array([{}]), allow_pickle=True)
    (folder / "bad.npz.npy").rename(folder / "bad.npz")
    openmxu(*run, "bad.npz").failed(2, "bad.npz is no readable .npy file: Object arrays cannot be loaded")
    contents = (folder / "x.npy").read_bytes()
    for length in (0, 3, 20, 200):
        (folder / "bad.npz").write_bytes(contents[:length])
        openmxu(*run, "bad.npz").failed(2, "bad.npz is no")
    openmxu(*run, "model.onnx").failed(2, "model.onnx is no .npy file")
    openmxu(*run, "missing.npy").failed(2, "cannot read missing.npy: no such file or directory")
    assert outputs_in(folder) == {"bad.npz"}


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"}", b"{"),  # the header never ends
        (b"(100, ", b"(" + b"9" * 30 + b", "),
        (b"(100, ", b"(" + b"9" * 15 + b", "),
        (b"(100, ", b"(-1, "),
    ],
)
def test_array_with_damaged_header_is_refused(openmxu, folder, good, bad):
    contents = (folder / "x.npy").read_bytes()
    assert good in contents[:128]
    header = contents[10:128].replace(good, bad).rstrip().ljust(117)[:117] + b"\n"
    (folder / "bad.npy").write_bytes(contents[:10] + header + contents[128:])
    openmxu("run", "model.onnx", "--input", "bad.npy", "--output", "y.npy").failed(
        2, "bad.npy is no readable .npy file"
    )
    assert outputs_in(folder) == {"bad.npy"}


def test_missing_model_or_folder_is_refused(openmxu, folder):
    run = ("run", "--input", "x.npy", "--output", "y.npy")
    openmxu(*run, "missing.onnx").failed(2, "cannot read missing.onnx: no such file or directory")
    openmxu(*run, ".").failed(2, "cannot read .: is a directory")
    assert outputs_in(folder) == set()


@pytest.mark.parametrize("output", ["missing/y.npy", ".", "x.npy/y.npy"])
def test_output_that_cannot_be_written(openmxu, folder, output):
    openmxu("run", "model.onnx", "--input", "x.npy", "--output", output).failed(2, f"cannot write {output}")
    openmxu("compile", "model.onnx", "-o", output).failed(2, f"cannot write {output}")
    assert outputs_in(folder) == set()


def test_missing_compiler_is_one_line(openmxu, folder):
    run = ("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", "--device", "verilator")
    openmxu(*run, environment={"PATH": str(folder)}).failed(1, "g++", "apt install g++")
    assert outputs_in(folder) == set()


def test_options_that_contradict_each_other(openmxu, folder):
    run = ("run", "model.onnx", "--input", "x.npy", "--output")
    openmxu(*run, "-", "--json").failed(2, "--json and --output - exclude each other")
    openmxu(*run, "y.npy", "--waveform", "y.vcd").failed(2, "--waves needs --device verilator")
    waves = (*run, "y.npy", "--waves", "y.vcd", "--device", "verilator")
    openmxu(*run, "y.npy", "--waves-cycles", "1:2").failed(2, "--waves-cycles needs --waves FILE")
    openmxu(*waves, "--waves-cycles", "7:2").failed(2, "must be FROM:TO, as in 1000:1200, not '7:2'")
    openmxu(*waves, "--waves-instruction", 99999).failed(2, "no instruction 99999: the program has 0 to ")
    openmxu(*waves, "--waves-instruction", 1, "--waves-cycles", "1:2").failed(2, "exclude each other")
    openmxu(*run, "y.npy", "--device", "abacus").failed(2, "'abacus' is not one of 'interpreter', 'model', 'verilator'")
    openmxu("compile", "model.onnx", "-o", "-").failed(2, "cannot be written to stdout")
    assert outputs_in(folder) == set()


def test_arrays_through_standard_streams(openmxu, folder):
    """The bytes of the output array are not text, so a shell connects the streams here."""
    command = f"{shlex.quote(sys.executable)} -m openmxu.cli run model.onnx --input - --output - < x.npy | cat > y.npy"
    assert subprocess.run(command, shell=True, cwd=folder, check=False).returncode == 0
    assert_equals_expected(folder, "y.npy")


def test_output_to_a_pipe_by_name(openmxu, folder):
    command = (
        f"{shlex.quote(sys.executable)} -m openmxu.cli run model.onnx --input x.npy --output /dev/fd/3 3>&1 >&2 | cat"
    )
    result = subprocess.run(f"{command} > y.npy", shell=True, cwd=folder, check=False, capture_output=True)
    assert result.returncode == 0
    assert_equals_expected(folder, "y.npy")


def test_model_in_a_pipe_is_refused(openmxu, folder):
    os.mkfifo(folder / "pipe")
    openmxu("run", "pipe", "--input", "x.npy", "--output", "y.npy").failed(2, "cannot read pipe: not a regular file")


def test_open_dimensions(openmxu, folder):
    model, inputs = open_model()
    onnx.save(model, folder / "open.onnx")
    np.save(folder / "image.npy", inputs)
    command = ("run", "open.onnx", "--input", "image.npy", "--output", "y.npy", "--size", 4)
    openmxu(*command).failed(2, "open.onnx: input 'x' must have fixed dimensions", "--shape height=N fixes it")
    for shapes in (("--shape", "height=7", "--shape", "width=9"), ("--shape", "x=0,3,7,9")):
        assert openmxu(*command, *shapes).status == 0
        assert openmxu("compare", "open.onnx", "-i", "image.npy", "--size", 4, *shapes).status == 0
    openmxu(*command, "--shape", "height").failed(2, "--shape must be NAME=N or NAME=N,N")
    openmxu(*command, "--shape", "depth=3").failed(2, "open.onnx: the model has no open dimension 'depth'")
    assert openmxu("compile", "open.onnx", "-o", "x.mxu", "--size", 4, *shapes).status == 0
    openmxu("run", "x.mxu", "-i", "image.npy", "-o", "y.npy", *shapes).failed(2, "x.mxu is compiled already")
