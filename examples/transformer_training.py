"""Transformers as they learn: the blocks of ``transformer_layers`` in PyTorch."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Block"]


class Block(nn.Module):
    """Attention and two products, each behind a LayerNormalization and added to its input.

    Parameters
    ----------
    channels, heads, wide
        Of tokens, of the attention, and between the two products.
    noise
        Standard deviation of what is added to the results of products while the network learns, as a share of theirs:
        several times what eight bits do, so that the network does not count on small differences.
    """

    def __init__(self, channels: int, heads: int, wide: int, noise: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.query, self.key, self.value, self.output = (nn.Linear(channels, channels, bias=False) for _ in range(4))
        self.wide, self.narrow = nn.Linear(channels, wide, bias=False), nn.Linear(wide, channels, bias=False)
        self._heads, self._noise = heads, noise

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, channels): every token attends to all."""
        query, key, value = self._parts(tokens)
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        return self._added(tokens, scores.softmax(dim=-1) @ value)

    def windowed(self, tokens: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
        """The same where every token attends to a window that ends with it.

        ``distances``, (heads, window), are added to the scores of the places in the window; what lies before the first
        token has keys and values of zero.
        """
        query, key, value = self._parts(tokens)
        window, steps = distances.shape[1], tokens.shape[1]
        key, value = (nn.functional.pad(part, (0, 0, window - 1, 0)) for part in (key, value))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        place = torch.arange(steps + window - 1)[None] - torch.arange(steps)[:, None]
        inside = (place >= 0) & (place < window)
        scores = scores + torch.where(inside, distances[:, place.clamp(0, window - 1)], -torch.inf)
        return self._added(tokens, scores.softmax(dim=-1) @ value)

    def _parts(self, tokens: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Queries, keys and values of all heads."""
        normal = self._noisy(self.first(tokens))
        return tuple(self._apart(self._noisy(part(normal))) for part in (self.query, self.key, self.value))

    def _added(self, tokens: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """What goes around attention and products, added to what they make."""
        merged = attended.transpose(1, 2).reshape(tokens.shape)
        tokens = self._noisy(tokens + self.output(self._noisy(merged)))
        wide = nn.functional.gelu(self._noisy(self.wide(self._noisy(self.second(tokens)))))
        return self._noisy(tokens + self.narrow(wide))

    def _apart(self, values: torch.Tensor) -> torch.Tensor:
        batch, tokens, channels = values.shape
        return values.reshape(batch, tokens, self._heads, channels // self._heads).transpose(1, 2)

    def _noisy(self, values: torch.Tensor) -> torch.Tensor:
        if not self.training or not self._noise:
            return values
        return values + self._noise * values.detach().std() * torch.randn_like(values)
