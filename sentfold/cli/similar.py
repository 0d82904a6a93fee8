"""Print the texts of a file that are most similar to a text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated
from unicodedata import category

import typer

from sentfold.cli.inputs import WORDS, Words, print_notes
from sentfold.numeric_profile import use_profile

OBEYED = ("Cc", "Cs", "Zl", "Zp")  # categories of characters
TURNED = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # characters that turn the direction of a text


def one_line(text: str) -> str:
    """A text without what a terminal obeys, as escapes: control characters, line breaks, turns. All letters stay."""
    return "".join(c.encode("unicode_escape").decode() if category(c) in OBEYED or TURNED.match(c) else c for c in text)


def command(
    text: Annotated[str, typer.Argument(help="A text.")],
    among: Annotated[Path, typer.Argument(help="Texts: CSV, TSV, JSONL, Parquet, or one a line.")],
    encoder: Annotated[
        str, typer.Option(help="all-MiniLM-L6-v2, a model's or an exported folder, a package, a method as sif.")
    ],
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the texts by the same encoder; else they are encoded now.")
    ] = None,
    space: Annotated[Path | None, typer.Option(help="The folder that `sentfold decide` wrote.")] = None,
    words: Words = WORDS,
    columns: Annotated[str | None, typer.Option(help="text=a; for pairs left=a,right=b,score=c.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many texts.")] = 10,
    least: Annotated[float, typer.Option(help="Least cosine, for example that of `sentfold threshold`.")] = -1.0,
) -> None:
    """Print cosine and text, the most similar first."""
    use_profile()
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import DataError
    from sentfold.data.vectors import read_vectors
    from sentfold.decision.encoders import count_notes, learned_notes, open_encoder, prompt_notes, unnamed_encoder
    from sentfold.decision.spaces import Unchanged, load_space
    from sentfold.decision.use import (
        PROBES,
        map_vectors,
        most_similar,
        read_texts,
        require_same_lengths,
        require_same_vectors,
    )
    from sentfold.encoders.base.protocol import known_methods

    text = text.encode("utf-8", "replace").decode()  # a shell hands on bytes that are no UTF-8
    wanted = parse_columns(columns)
    if vectors is None:  # scores and labels matter not
        found, notes = read_texts(among, wanted)
        texts = list(dict.fromkeys(found))
    else:
        data = read_dataset(among, wanted, judged=False)
        texts, notes = list(data.texts), list(data.notes)
    if not texts:
        raise DataError("there are no texts to show", where=among.name)
    print_notes(notes)
    fitted = load_space(space) if space else None
    encode = open_encoder(encoder, words, space=space, fit_on=texts)
    if encoder.lower() not in known_methods():
        print_notes([*learned_notes(encoder), *prompt_notes(encoder)])
    print_notes(unnamed_encoder(space, encoder) if space else [])
    if vectors is None:
        encoded = encode(texts)
        known = encoded.vectors
        print_notes(count_notes(encoder, encoded.fallbacks))
    else:
        known = read_vectors(vectors, data)[0][: len(texts)]
    asked = encode([text])
    query = asked.vectors
    # A space, also that of an exported method, can map zero to a place near other texts.
    if not query.any() or asked.fallbacks.get("all words unknown"):
        raise DataError(
            "the text has no vector", where="TEXT", expected="a word that the encoder knows",
            got="; ".join(count_notes(encoder, asked.fallbacks)) or "zeros", remedy="write the text in other words",
        )  # fmt: skip
    print_notes([f"of the text itself, {note}" for note in count_notes(encoder, asked.fallbacks)])
    if query.shape[1] != known.shape[1]:
        raise DataError(
            "the vectors are of another encoder", where=str(vectors), expected=f"{query.shape[1]} dimensions",
            got=str(known.shape[1]),
        )  # fmt: skip
    images, image = (
        (map_vectors(fitted, part, space) for part in (known, query)) if fitted and space else (known, query)
    )
    shown = [row for row, one in enumerate(texts) if one]  # a corpus can have documents without a text
    nearest = [(shown[place], cosine) for place, cosine in most_similar(image[0], images[shown], top)]
    if vectors:  # the vectors of a file can be of an earlier state of the texts
        remedy = "give the encoder's own vectors, which --space then maps; or leave --vectors out"
        checked = nearest[: max(PROBES, sum(cosine >= least for _, cosine in nearest))]
        now = encode([texts[row] for row, _ in checked]).vectors
        for (row, _), again in zip(checked, now, strict=True):
            require_same_vectors([texts[row]], known[[row]], again[None], where=str(vectors), remedy=remedy)
        if not isinstance(fitted, Unchanged | None):
            require_same_lengths(known[[row for row, _ in checked]], now, where=str(vectors))
    for row, cosine in nearest:
        if cosine < least:
            break
        print(f"{cosine:.3f}  {one_line(texts[row])}")
