"""Write trec_eval.json: what trec_eval itself says of random runs with ties.

    pip install pytrec-eval-terrier   (in an environment of its own)
    python tests/retrieval/make_trec_eval.py

Judgements have grades 0 to 3; the scores are whole numbers, so that many documents are tied.
"""

import json
import random
from pathlib import Path

import pytrec_eval

MEASURES = {"map", "ndcg_cut.10", "recip_rank", "recall.1,10,100"}


def main() -> None:
    rng = random.Random(7)
    documents = [f"d{number:03d}" for number in rng.sample(range(1000), 120)]
    judged, runs = {}, {}
    for number in range(8):
        query = f"q{number}"
        judged[query] = {document: rng.randrange(4) for document in rng.sample(documents, 15)}
        runs[query] = {document: float(rng.randrange(1000 if number < 3 else 25)) for document in documents}
    found = pytrec_eval.RelevanceEvaluator(judged, MEASURES).evaluate(runs)
    content = {"judged": judged, "run": runs, "trec_eval": found}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    Path(__file__).with_name("trec_eval.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
