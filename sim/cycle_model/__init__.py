"""The cycle model: predicts the hardware's cycles for a program without simulating it cycle by cycle."""

from openmxu.sim.cycle_model.prediction import Prediction, Predictor, UnpredictedError, check_predicted, predict

__all__ = ["Prediction", "Predictor", "UnpredictedError", "check_predicted", "predict"]
