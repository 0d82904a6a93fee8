"""A fitted method over word vectors as the first module of a SentenceTransformer. Needs `sentfold[text]`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.base.modules import InputModule

from sentfold.decision.encoders import FittedMethod, load_words, save_words


class WordModule(InputModule):
    """Encodes texts by a method over word vectors, on the CPU. No gradient passes."""

    save_in_root = False

    def __init__(self, fitted: FittedMethod) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # sentence-transformers leaves it untyped
        self.fitted = fitted

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """The texts as they are, behind the prompt."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """`texts` become `sentence_embedding`, (m, d) float32."""
        features["sentence_embedding"] = torch.from_numpy(self.fitted.encode(features["texts"]).vectors)
        return features

    def get_embedding_dimension(self) -> int:
        """d."""
        return self.fitted.dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the fit, and the word vectors where they come from a file."""
        save_words(self.fitted, Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *options: Any, **named: Any) -> Self:
        """The module of a folder on this disk."""
        return cls(load_words(Path(model_name_or_path) / subfolder))
