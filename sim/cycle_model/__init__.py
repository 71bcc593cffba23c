"""The cycle model: how long the hardware takes for a program, without simulating it cycle by cycle."""

from openmxu.sim.cycle_model.prediction import Prediction, predict

__all__ = ["Prediction", "predict"]
