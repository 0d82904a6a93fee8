"""A space as the last module of a SentenceTransformer, for maps that are not linear. Needs `sentfold[text]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.base.modules import Module

from sentfold.decision.spaces import Space, load_space, save_space, space_widths


class SpaceModule(Module):
    """Maps each sentence embedding by a space of sentfold, on the CPU. No gradient passes."""

    def __init__(self, space: Space) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.space = space

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """`sentence_embedding`, (m, d), becomes its images, (m, p) float32."""
        x = features["sentence_embedding"]
        images = self.space.transform(x.detach().float().cpu().numpy())
        features["sentence_embedding"] = torch.from_numpy(images).to(x.device)
        return features

    def get_embedding_dimension(self) -> int | None:
        """p."""
        return space_widths(self.space)[1]

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write space.json and space.safetensors."""
        save_space(self.space, Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *options: Any, **named: Any) -> Self:
        """The module of a folder on this disk."""
        return cls(load_space(Path(model_name_or_path) / subfolder))
