"""On public data `decide` finds what is there to be found, and claims no more than its interval bears.

The data come from the mirror that the environment variable SENTFOLD_MIRROR names: trec/ and stsb/, Parquet with a
column `split`. Encoding takes minutes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from sentfold.data.datasets import Dataset, read_dataset
from sentfold.data.vectors import encode_texts
from sentfold.decision.decide import Decision, decide_dataset

MIRROR = os.environ.get("SENTFOLD_MIRROR", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MIRROR, reason="SENTFOLD_MIRROR is not set: it names a folder with trec/ and stsb/"),
]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_on_trec_the_gain_of_principal_components_is_found() -> None:
    data = read_dataset(Path(MIRROR) / "trec", {"text": "text", "label": "label"})  # it has finer labels too
    x = encode_texts("all-MiniLM-L6-v2", data.texts)
    decision = decide_dataset(data, x)
    train, test = (data.rows[np.array(data.splits) == part] for part in ("train", "test"))
    classes = dict(zip(data.rows, data.values, strict=True))
    right = [classes[row] for row in test]

    def by_neighbours(space: np.ndarray) -> float:
        """Accuracy of the three nearest; of equally frequent classes that of the nearest text counts."""
        near = (
            NearestNeighbors(n_neighbors=3, algorithm="brute").fit(unit(space[train])).kneighbors(unit(space[test]))[1]
        )
        voted = [Counter(classes[train[place]] for place in row).most_common(1)[0][0] for row in near]
        return 100 * float(np.mean(np.array(voted) == right))

    # One text of 500 is 0.2 points: two neighbours at one distance, which rounding orders.
    assert by_neighbours(x) == pytest.approx(68.0, abs=0.25)
    assert decision.cosine == pytest.approx(by_neighbours(x), abs=0.25)
    assert decision.items == len(test) == 500
    assert decision.recommended
    assert decision.candidates[0].low > 0
    components = next(one for one in decision.candidates if one.name == "principal components")
    assert components.low > 0
    assert components.score >= 76.0  # 77.2 with the dimension that other data chose
    (dimensions,) = (int(point.split()[0]) for point in components.chosen)
    own = PCA(dimensions).fit(x[train]).transform(x)
    assert components.score == pytest.approx(by_neighbours(own), abs=2.0)


@pytest.fixture(scope="module")
def stsb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, np.ndarray, Decision]]:
    """Fitted on the dev part of stsb and judged on its test part."""
    parts = {"train": "dev", "test": "test"}
    tables = []
    for split, part in parts.items():
        table = pq.read_table(Path(MIRROR) / "stsb" / f"{part}.parquet", columns=["sentence1", "sentence2", "score"])
        tables.append(table.append_column("split", pa.array([split] * len(table))))
    path = tmp_path_factory.mktemp("stsb") / "pairs.parquet"
    pq.write_table(pa.concat_tables(tables), path)
    data = read_dataset(path)
    x = encode_texts("all-MiniLM-L6-v2", data.texts)
    yield data, x, decide_dataset(data, x)


def test_on_stsb_a_claim_is_borne_by_an_independent_interval(stsb: tuple[Dataset, np.ndarray, Decision]) -> None:
    data, x, decision = stsb
    automatic = decision.candidates[0]
    judged = np.array(data.splits) == "test"
    pairs, scores = data.rows[judged], data.values[judged]
    cosines = [
        (unit(space)[pairs[:, 0]] * unit(space)[pairs[:, 1]]).sum(axis=1)
        for space in (x, decision.alternative.transform(x))
    ]
    rng = np.random.default_rng(0)

    def gain(items: np.ndarray) -> float:
        before, after = (float(spearmanr(values[items], scores[items]).statistic) for values in cosines)
        return 100 * (after - before)

    everything = np.arange(len(pairs))
    assert gain(everything) == pytest.approx(automatic.difference, abs=0.01)  # cosines are rounded to seven digits
    low, high = np.quantile([gain(rng.choice(everything, len(everything))) for _ in range(400)], [0.025, 0.975])
    # The interval of `decide` holds for all candidates together, so it is the longer one; 400 resamples miss by 10%.
    reach = 0.1 * (high - low)
    assert automatic.low <= low + reach
    assert automatic.high >= high - reach
    assert decision.recommended == any(one.low > 0 for one in decision.candidates)
    if not decision.recommended:
        assert decision.verdict.startswith("Keep cosine")
        assert decision.name == "cosine"
