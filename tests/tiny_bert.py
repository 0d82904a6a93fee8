"""A small random BERT with a WordPiece vocabulary of our own, saved as transformers saves a model: no modules.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a dog cat naps sat ran on quiet harbour snow falls old bread rises nine kettles in rows ##s ##ing . ?"
HIDDEN, LAYERS, POSITIONS = 24, 6, 40


def write_bert(folder: Path, *, layers: int = LAYERS, pooler: bool = True, seed: int = 0) -> Path:
    """The folder of a BERT whose weights are larger than at the start of a training, so that its layers differ."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS.split()),
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        initializer_range=0.1,
    )
    BertModel(config, add_pooling_layer=pooler).save_pretrained(folder)
    make_tokenizer(folder).save_pretrained(folder)
    return folder


def make_tokenizer(folder: Path) -> Any:
    from transformers import BertTokenizer

    path = folder / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, *WORDS.split()]) + "\n", encoding="utf-8")
    return BertTokenizer(str(path), model_max_length=POSITIONS)
