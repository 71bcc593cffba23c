"""Parameters of the core in a LiteX system."""

import argparse

import pytest

from openmxu.arch.config import Config

pytestmark = pytest.mark.filterwarnings("ignore")


def test_parameters():
    from openmxu.litex import openmxu_config

    assert openmxu_config() == Config.for_size(8)
    assert openmxu_config(size=4, data_bytes=4) == Config.for_size(4, host_data_bytes=4, weight_data_bytes=4)
    assert openmxu_config(preset="tiny", data_bytes=4, host_data_bytes=16).host_data_bytes == 16
    with pytest.raises(ValueError, match="exclude each other"):
        openmxu_config(preset="tiny", size=4)
    with pytest.raises(TypeError, match="lanes is no parameter"):
        openmxu_config(lanes=2)


def test_options_of_a_command_line():
    from openmxu.litex import add_openmxu_arguments, openmxu_config

    parser = argparse.ArgumentParser()
    add_openmxu_arguments(parser)
    arguments = vars(parser.parse_args(["--openmxu-size", "4", "--openmxu-profile", "full"]))
    given = {name.removeprefix("openmxu_"): value for name, value in arguments.items() if value is not None}
    assert openmxu_config(**given) == Config.for_size(4, profile="full")
