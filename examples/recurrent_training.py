"""How the example networks with LSTM layers learn to live with eight bits: rounded weights, and noise in the cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn

__all__ = ["LstmNetwork"]


class LstmNetwork(nn.Module):
    """Embedding, layers of LSTM, Dense.

    Parameters
    ----------
    words, width
        Shape of the embedding.
    units, layers
        Of the LSTM.
    results
        Of Dense.
    gate_noise, state_noise
        Standard deviation of what is added to the sums of gates and to hidden states while the network learns. It
        should be several times what eight bits do, so that the network does not count on small differences.
    dropout
        Share of the embedding's and of hidden states' elements that are missing for the next layer meanwhile.
    """

    def __init__(
        self,
        words: int,
        width: int,
        units: int,
        layers: int,
        results: int,
        *,
        gate_noise: float,
        state_noise: float,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, units, num_layers=layers)
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(units, results)
        self._gate_noise, self._state_noise = gate_noise, state_noise

    def states(self, words: torch.Tensor) -> torch.Tensor:
        """Hidden states of the last layer in every step for words (batch, steps): (steps, batch, units)."""
        values = self.embedding(words).transpose(0, 1)
        if not self.training:
            return self.lstm(values)[0]
        for layer in range(self.lstm.num_layers):
            values = self._noisy(self.dropout(values), layer)
        return values

    def _noisy(self, values: torch.Tensor, layer: int) -> torch.Tensor:
        weight, recurrence, *biases = (
            getattr(self.lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        sums = values @ weight.T + sum(biases)
        sums = sums + self._gate_noise * torch.randn_like(sums)
        hidden = cell = torch.zeros(values.shape[1], self.lstm.hidden_size)
        noise = self._state_noise * torch.randn(len(values), *hidden.shape)
        states = []
        for step, difference in zip(sums, noise, strict=True):
            enter, remember, candidate, leave = torch.addmm(step, hidden, recurrence.T).chunk(4, dim=1)
            cell = remember.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = leave.sigmoid() * cell.tanh() + difference
            states.append(hidden)
        return torch.stack(states)

    @contextmanager
    def rounded(self) -> Iterator[None]:
        """A block in which weights are what :func:`openmxu.quantize` makes of them; gradients are those of the rounded
        ones."""
        kept = {name: value.data for name, value in self.named_parameters()}
        with torch.no_grad():
            scale, numbers = _whole_numbers(self.embedding.weight)
            self.embedding.weight.data = scale * numbers
            self.dense.weight.data = _rounded(self.dense.weight.data, 1.0)[0]
            for layer in range(self.lstm.num_layers):
                pair = [getattr(self.lstm, f"weight_{kind}_l{layer}") for kind in ("ih", "hh")]
                factor = 1 / 127 if layer else float(scale)
                rounded = _rounded(pair[0].data, factor, pair[1].data, 1 / 127)
                for weight, value in zip(pair, rounded, strict=True):
                    weight.data = value
        yield
        for name, value in self.named_parameters():
            value.data = kept[name]

    def save(self, path: Path) -> None:
        """Write the rounded weights: float16, but the embedding in whole numbers and what they are multiples of."""
        with self.rounded():
            arrays = {name: value.detach().numpy().astype(np.float16) for name, value in self.named_parameters()}
        scale, numbers = _whole_numbers(self.embedding.weight.detach())
        arrays |= {"embedding.weight": numbers.numpy().astype(np.int16), "embedding.weight_scale": scale.numpy()}
        np.savez_compressed(path, **arrays)


def _whole_numbers(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A 255th of the way from the smallest number to the largest, and the whole multiple of it that each one is."""
    scale = (values.max() - values.min()) / 255
    return scale, (values / scale).round()


def _rounded(first: torch.Tensor, factor: float, *others: torch.Tensor | float) -> list[torch.Tensor]:
    """Weights, each followed by the scale of what it multiplies, rounded so that products mean the same in a row."""
    weights, factors = [first, *others[::2]], [factor, *others[1::2]]
    products = [
        (weight * scale).abs().amax(dim=1, keepdim=True) for weight, scale in zip(weights, factors, strict=True)
    ]
    product = torch.stack(products).amax(dim=0) / 127
    return [
        (weight * scale / product).round() * product / scale for weight, scale in zip(weights, factors, strict=True)
    ]
