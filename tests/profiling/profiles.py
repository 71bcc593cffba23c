"""Profiles that several tests look at."""

from __future__ import annotations

import functools

import openmxu
import openmxu.models
from openmxu.profiling import Profile, take_profile

__all__ = ["digits_profile"]


@functools.cache
def digits_profile() -> Profile:
    """The network of the demo on the interpreter, at S = 8."""
    config = openmxu.Config()
    program = openmxu.compile(openmxu.models.DIGITS_MODEL, config)
    images, _ = openmxu.models.digits_test_split()
    with openmxu.open_device("interpreter", config) as device:
        return take_profile(program, device, images, model="digits.onnx", device_name="interpreter")
