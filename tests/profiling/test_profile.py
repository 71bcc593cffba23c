"""The numbers of a profile add up, and those of its page are those of its JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import openmxu
from openmxu.compiler import gemm
from openmxu.profiling import predicted_timeline, take_profile
from openmxu.profiling.limits import limit_in_words
from openmxu.profiling.page import profile_page
from openmxu.report_table import REPORT_HEADINGS
from openmxu.sim import cycle_model
from openmxu.sweep.measuring import Group, Memory, Product, measure
from tests.profiling.profiles import digits_profile

KINDS = ("array_active", "weight_stall", "weight_shift", "non_matrix")


class Page(HTMLParser):
    """Collects what a page refers to, its scripts, and the text of each element with an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.data: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self.scripts = 0
        self._id = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.references += [value or "" for name, value in attributes if name in ("src", "href", "action", "data")]
        self.references += [tag] if tag in ("link", "img", "iframe", "object", "base") else []
        self.scripts += tag == "script"
        self._id = named.get("id") or ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, text: str) -> None:
        if self._id:
            self.data[self._id] = self.data.get(self._id, "") + text
        if self.rows and self.rows[-1] and not self.rows[-1][-1]:
            self.rows[-1][-1] = text

    def handle_endtag(self, tag: str) -> None:
        self._id = ""


def test_numbers_add_up():
    found = json.loads(json.dumps(digits_profile().as_dict(), allow_nan=False))
    layers = found["report"]["layers"]
    assert [layer["name"] for layer in layers] == ["dense0", "dense1"]
    assert sum(layer["cycles"] for layer in layers) == found["layer_cycles"] == found["cycles"]
    assert found["counted_cycles"] is None  # the interpreter has no clock
    for layer in layers:
        assert sum(layer["kinds"][kind] for kind in KINDS) == layer["cycles"]
    instructions = {len(values) for name, values in found["timeline"].items() if isinstance(values, list)}
    assert instructions == {found["instructions"]}
    assert max(found["timeline"]["done"]) == found["cycles"]
    assert 0 < found["occupancy"]["peak"] <= found["report"]["total"]["unified_buffer_rows"]


def test_page_shows_the_numbers():
    profile = digits_profile()
    page = Page(profile_page(profile))
    assert page.data["cycles"] == f"{profile.cycles:,}"
    assert page.data["utilization"] == f"{profile.utilization:.3f}"
    shown = {row[0]: row for row in page.rows if len(row) == len(REPORT_HEADINGS)}
    for layer in (*profile.report.layers, profile.report.total):
        assert shown[layer.name][3] == f"{layer.cycles:,}"
    in_words = {row[0]: row[2] for row in page.rows if len(row) == 3}
    assert in_words["dense0"] == limit_in_words(profile.report.layers[0])
    charts = json.loads(page.data["charts"])
    drawn = np.array([bar["x"] for bar in charts["accounting"]["data"]])
    assert drawn.sum(axis=0).tolist() == [layer.cycles for layer in profile.report.layers]
    lanes = json.loads(page.data["timeline-data"])["lanes"]
    shown_instructions = sorted(index for lane in lanes for index in lane.get("index", ()))
    assert shown_instructions == list(range(len(profile.program.instructions)))


def test_page_refers_to_nothing_else():
    page = Page(profile_page(digits_profile()))
    assert page.references == []
    assert page.scripts == 4  # Plotly's, two of data, and the page's


def test_names_of_layers_are_no_markup():
    profile = digits_profile()
    name = "</script><script>alert(1)</script><img src=x>"
    layers = (dataclasses.replace(profile.program.layers[0], name=name), profile.program.layers[1])
    program = dataclasses.replace(profile.program, layers=layers)
    report = openmxu.report(program)
    page = Page(profile_page(dataclasses.replace(profile, program=program, report=report, model=name)))
    assert page.references == []
    assert page.scripts == 4


def test_cycles_that_no_layer_has_are_shown():
    profile = dataclasses.replace(digits_profile(), counters={"cycles": digits_profile().cycles + 1_003})
    assert profile.difference == 1_003
    page = Page(profile_page(profile))
    assert page.data["cycles"] == f"{profile.cycles:,}"
    assert "the layers' predicted cycles add up to" in page.data["sum"]
    assert "not in any layer" in [row[0] for row in page.rows]
    exact = dataclasses.replace(profile, counters={"cycles": digits_profile().cycles})
    assert "exactly the device's counter" in Page(profile_page(exact)).data["sum"]


def test_page_embeds_a_view_of_the_array():
    assert '<section id="array">here</section>' in profile_page(digits_profile(), '<section id="array">here</section>')


def test_only_the_first_batch_is_profiled():
    program = gemm(8, 16, 8, openmxu.Config(size=4))
    (spec,) = program.inputs
    device = openmxu.open_device("interpreter", program.config)
    inputs = np.zeros(spec.full_shape(3 * program.batch), spec.dtype)
    assert take_profile(program, device, inputs, model="", device_name="").elements == program.batch


def test_cycles_are_predicted_once(monkeypatch):
    predictors = []
    original = cycle_model.Predictor.__init__

    def counted(self, *arguments):
        predictors.append(self)
        original(self, *arguments)

    monkeypatch.setattr(cycle_model.Predictor, "__init__", counted)
    program = gemm(8, 16, 8, openmxu.Config(size=4))
    inputs = np.zeros(program.inputs[0].full_shape(program.batch), np.uint8)
    predictors.clear()  # the compiler's
    with openmxu.open_device("interpreter", program.config) as device:
        profile = take_profile(program, device, inputs, model="", device_name="")
    assert len(predictors) == 1
    assert profile.report == openmxu.report(program)
    assert profile.timeline.cycles == predicted_timeline(program).cycles == profile.report.total.cycles


def test_cores_that_the_cycle_model_does_not_know():
    program = gemm(8, 16, 8, openmxu.Config.preset("icebreaker"))
    inputs = np.zeros(program.inputs[0].full_shape(program.batch), np.uint8)
    message = "^the cycle model does not know cores of the profile lite, which execute one instruction after the other$"
    with openmxu.open_device("interpreter", program.config) as device:
        with pytest.raises(cycle_model.UnpredictedError, match=message):
            take_profile(program, device, inputs, model="", device_name="")
    with pytest.raises(cycle_model.UnpredictedError, match=message):
        predicted_timeline(program)
    (result,) = measure(
        {"product": Product(8, 16, 8)}, Group("product", None, 0, program.config, (Memory(4, None, None),))
    )
    assert re.fullmatch(message, result["error"])


@pytest.mark.parametrize(
    ("limit", "part"), [("array", "The array is busy for 80% of the cycles"), ("latency", "No part")]
)
def test_limits_in_words(limit, part):
    layer = digits_profile().report.layers[0]
    changed = dataclasses.replace(layer, limit=limit, cycles=1000, busy=layer.busy | {"array": 800})
    assert limit_in_words(changed).startswith(part)


def test_waits_are_named():
    layer = digits_profile().report.layers[0]
    kinds = dict.fromkeys(layer.kinds, 0) | {"raw_stall": 10, "weight_stall": 40}
    words = limit_in_words(dataclasses.replace(layer, limit="latency", cycles=100, kinds=kinds))
    assert "the array waits for weights for 40% of them" in words
    assert "hidden" in limit_in_words(dataclasses.replace(layer, cycles=0))
