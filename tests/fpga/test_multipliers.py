"""Number of processing elements that get a multiplier block."""

import pytest

from openmxu.arch.config import Config
from openmxu.rtl.fpga.target import Family, Target
from scripts.fpga.multipliers import target_for
from scripts.fpga.parts import find_part

DESIGN = r"""
module top (a, b);
  \top.array  array (
    .a(a)
  );
  \top.select  select (
    .a(a)
  );
endmodule
module \top.array (a, b);
  \top.array.element  element (
    .a(a)
  );
endmodule
module \top.array.element (a, b);
  assign \$1  = a * b;
endmodule
module \top.select (place, a, b);
  assign \$1  = place * 4'h8;
  assign \$2  = place * 7'h40;
  assign \$3  = place * 6'h20;
  assign \$4  = place * 4'h1;
{products}
endmodule
"""


@pytest.mark.parametrize(
    ("products", "blocks"),
    [
        ([], 36),
        ([r"assign \$5  = a * b;"], 35),
        ([r"assign \$5  = a * 4'h6;", r"assign \$6  = a * 8'h18;"], 34),
        ([r"assign \$5  = a * b;", r"MULT18X18D #("], 34),
        ([r"assign \$5  = a * b;"] * 40, 0),
    ],
)
def test_the_array_gets_the_remaining_multipliers(products, blocks):
    verilog = DESIGN.replace("{products}", "\n".join(f"  {product}" for product in products))
    target = target_for(Config.for_size(8), find_part("GW1NR-LV9QN88PC6/I5"), lambda _: verilog)
    assert target == Target(Family.GOWIN, array_multipliers=blocks)


def test_the_array_gets_no_more_multipliers_than_sites():
    part = find_part("LFE5U-85F")
    sites = sum(map(len, part.array_sites))
    assert 0 < sites < part.multipliers
    assert target_for(Config.for_size(16), part, lambda _: DESIGN.replace("{products}", "")) == Target(
        Family.ECP5, array_multipliers=sites
    )


def test_an_array_far_smaller_than_the_part_is_not_counted():
    def verilog(target):
        raise AssertionError("not needed")

    assert target_for(Config.for_size(8), find_part("LFE5U-85F"), verilog) == Target(Family.ECP5)


def test_each_instance_of_a_shared_module_counts():
    other = "  \\top.select  other (\n    .a(a)\n  );\n"
    verilog = DESIGN.replace("  \\top.select ", f"{other}  \\top.select ", 1)
    verilog = verilog.replace("{products}", "  assign \\$5 = a * b;")
    target = target_for(Config.for_size(8), find_part("GW1NR-LV9QN88PC6/I5"), lambda _: verilog)
    assert target.array_multipliers == 34
