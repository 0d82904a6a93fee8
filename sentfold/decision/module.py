"""A space as the last module of a SentenceTransformer, for maps that are not linear. Needs `sentfold[text]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module

from sentfold.decision.spaces import Space, load_space, save_space, space_widths
from sentfold.encoders.model_safety import SPACE_MODULE, refuse_unsafe
from sentfold.encoders.transformer import SAFE_WEIGHTS, check_loaded
from sentfold.errors import EncoderError, first_line


def load_exported(encoder: str, folder: Path) -> SentenceTransformer:
    """Load a model folder of `sentfold export` with a map that is not linear, and no code that the folder names.

    trust_remote_code=True would trust more than this class: the settings of a transformer, a tokenizer or a Dense
    module can name code of other folders, of the hub, or any installed function. Raises EncoderError.
    """
    refuse_unsafe(encoder, folder)
    try:
        model = SentenceTransformer._load_with_module_classes(
            str(folder),
            {SPACE_MODULE: SpaceModule},
            device="cpu",
            local_files_only=True,
            model_kwargs=dict(SAFE_WEIGHTS),
        )
    except Exception as error:  # noqa: BLE001  # a damaged model makes torch, transformers or json raise anything
        raise EncoderError(
            f"encoder '{encoder}' cannot be loaded",
            where=folder.name,
            expected="a folder that `sentfold export` wrote",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy="export the model again with `sentfold export`",
        ) from None
    check_loaded(encoder, model)
    return model.float().eval()


class SpaceModule(Module):
    """Maps each sentence embedding by a space of sentfold, on the CPU. No gradient passes."""

    def __init__(self, space: Space) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # sentence-transformers leaves it untyped
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
