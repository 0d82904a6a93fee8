"""Small lexicons and sentences of our own for the tests of the word encoders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import Encoder, find_method
from sentfold.encoders.base.settings import make_settings
from sentfold.words.counts import WordCounts

TEXT = """
the a of dog cat sat ran on mat in rain blue bright kettle harbour nine old bread rises quiet falls snow naps
winter road lamp green stone river boat seven letters paper ink clock late early morning
"""
WORDS = tuple(TEXT.split())


def make_lexicon(seed: int = 0, *, dimension: int = 12, clusters: int = 6) -> Lexicon:
    """Words with random vectors of unlike lengths, counts by Zipf of most of them and of others, and clusters."""
    rng = np.random.default_rng(seed)
    lengths = np.linspace(0.5, 3, len(WORDS))[:, None]
    vectors = ((rng.normal(size=(len(WORDS), dimension)) + 0.3) * lengths).astype(np.float32)
    counted = [word for i, word in enumerate(WORDS) if i % 6 != 5] + [f"unseen{i}" for i in range(200)]
    counts = np.array([int(1e6 / rank**1.2) + 2 for rank in range(1, len(counted) + 1)], dtype=np.int64)
    labels = rng.integers(0, clusters, len(WORDS)).astype(np.int32)
    centroids = rng.normal(size=(clusters, dimension)).astype(np.float32).astype(np.float64)
    return Lexicon(WORDS, vectors, WordCounts(tuple(counted), counts), Clusters(labels, centroids))


def make_sentences(seed: int = 0, count: int = 40, longest: int = 20) -> list[str]:
    """Sentences of known words, with repeats inside them and among them."""
    rng = np.random.default_rng(seed)
    made = [" ".join(rng.choice(WORDS, size=rng.integers(1, longest + 1))) for _ in range(count)]
    return [*made, made[0], "dog", "dog dog", "the cat the cat the cat"]


def make_encoder(method: str, lexicon: Lexicon, **settings: object) -> Encoder:
    """An encoder by its file's name; whitespace tokens unless the settings say otherwise."""
    module = find_method(method)
    encoder: Encoder = module.build(
        lexicon, make_settings(module, {"tokenizer": "whitespace", **settings}, where="test")
    )
    return encoder


def encode(method: str, lexicon: Lexicon, sentences: Sequence[str], **settings: object) -> np.ndarray:
    """Vectors of `sentences` fitted on themselves."""
    return make_encoder(method, lexicon, **settings).fit(sentences).encode(sentences).vectors


sentence_lists = st.lists(
    st.lists(st.sampled_from([*WORDS, "xyzzy", ".", "!"]), max_size=12).map(" ".join), min_size=1, max_size=12
)
