"""Train the time series network with PyTorch and write ``weights.npz``: python examples/series_gru/train.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from plant import ALARMS, SIGNALS, STEPS, measurements
from torch import nn

UNITS = 512
ROUNDS, SEQUENCES, WINDOW = 40, 24, 84


class Watcher(nn.Module):
    """GRU, Dense."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(SIGNALS, UNITS, batch_first=True)
        self.dense = nn.Linear(UNITS, ALARMS)

    def forward(self, signals: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of every step, (batch, steps, alarms), and the state behind the last one."""
        outputs, state = self.gru(signals, state)
        return self.dense(outputs), state


def main() -> None:
    torch.manual_seed(0)
    model = Watcher()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, ROUNDS)
    for number in range(ROUNDS):
        signals, alarms = (torch.from_numpy(item) for item in measurements(SEQUENCES, seed=100 + number))
        state = torch.zeros(1, SEQUENCES, UNITS)
        total, right = 0.0, 0.0
        for start in range(0, STEPS, WINDOW):
            part = slice(start, start + WINDOW)
            optimizer.zero_grad()
            logits, state = model(signals[:, part], state.detach())
            loss = nn.functional.binary_cross_entropy_with_logits(logits, alarms[:, part])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            right += ((logits > 0) == (alarms[:, part] > 0.5)).float().mean().item()
        schedule.step()
        windows = STEPS // WINDOW
        print(f"round {number + 1}: loss {total / windows:.4f}, right {right / windows:.3f}", flush=True)
    arrays = {name: value.numpy().astype(np.float16) for name, value in model.state_dict().items()}
    np.savez_compressed(Path(__file__).parent / "weights.npz", **arrays)


if __name__ == "__main__":
    main()
