"""openmxu: an open, synthesizable matrix accelerator in the manner of Google's first TPU."""

from openmxu.arch import Config

__all__ = ["Config"]
