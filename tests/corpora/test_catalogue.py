"""The catalogue against what was published, stated here independently of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.corpora.archive_readers import READERS
from pipeline.corpora.catalogue import Dataset, find_corpus, load_catalogue
from pipeline.corpora.reading import COLUMNS
from sentfold.errors import SentfoldError, SourceError

# Corpus -> number of items, from the papers and releases that the catalogue cites.
PUBLISHED = {
    "lee": 50 * 49 // 2,
    "polarity": 100 + 100,
    "simlex": 999,
    "wordsim": 353,
    "happy": 6,
    "sts12": 750 + 750 + 459 + 750 + 399,
    "sts12-train": 750 + 750 + 734,
    "sts13": 189 + 561 + 750,
    "sts14": 450 + 300 + 750 + 750 + 750 + 750,
    "sts15": 375 + 750 + 375 + 750 + 750,
    "sts16": 254 + 249 + 230 + 244 + 209,
    "stsb": 625 + 254 + 500,
    "stsb-dev": 625 + 375 + 500,
    "stsb-train": 2000 + 450 + 3299,
    "stsb-trained": 5749 + 1500 + 1379,
    "sickr": 4927,
    "sickr-trained": 4500 + 500 + 4927,
    "sick-e": 4500 + 500 + 4927,
    "sickr-dev": 500,
    "sickr-train": 4500,
    "sickr-all": 4500 + 500 + 4927,
    "mr": 5331 + 5331,
    "cr": 2407 + 1368,
    "cr-setfit": 3394 + 376,
    "cr-short": 2407 + 1368,  # before the longer texts are left out
    "subj": 5000 + 5000,
    "mpqa": 3312 + 7294,
    "sst2": 67349 + 872 + 1821,
    "sst2-sentences": 6920 + 872 + 1821,
    "trec": 5452 + 500,
    "mrpc": 4076 + 1725,
    "20news": 11314 + 7532,
    "20news-body": 11314 + 7532,
    "20news-train": 11314,
    "20news-test": 7532,
    "cqa-b": 70 * 10,
    "cqa-b-dev": 50 * 10,
    "cqa-b-train": 67 * 10,
    "cqa-b-2017": 88 * 10,
    "snli": 3368 + 3219 + 3237,
    "snli-dev": 3329 + 3235 + 3278,
    "snli-train": 183416 + 182764 + 183187,
    "word-freq": 188033,
    # Judgements, as ir_datasets counts them; table 1 of BEIR's paper has the queries and the judgements of a query.
    "scifact": 339 + 919,
    "nfcorpus": 12334 + 11385,
    "arguana": 1406,
    "fiqa": 1706 + 1238,
    "quora": 15675 + 7626,
}

DATASETS = load_catalogue()


def size(slug: str) -> int:
    corpus = find_corpus(slug)
    return sum(corpus.dataset.splits[split] for split in corpus.splits)


def test_the_corpora_are_exactly_the_published_ones() -> None:
    assert {slug for data in DATASETS.values() for slug in data.corpora} == set(PUBLISHED)


@pytest.mark.parametrize("slug", sorted(PUBLISHED))
def test_a_corpus_has_its_published_number_of_items(slug: str) -> None:
    assert size(slug) == PUBLISHED[slug]


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_data_set_says_what_it_is_who_made_it_and_under_which_terms(name: str) -> None:
    data = DATASETS[name]
    assert all(field.strip() for field in (data.title, data.citation, data.licence, data.text))
    assert re.search(r"\d{4}", data.citation) or name == "happy"


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_split_can_be_had_from_somewhere_and_belongs_to_a_corpus(name: str) -> None:
    data = DATASETS[name]
    used = {split for splits in data.corpora.values() for split in splits}
    assert used == set(data.splits)
    for split in data.splits:
        assert data.package or data.inline or split in data.hub or split in data.archive


HUB = [(name, split) for name, data in sorted(DATASETS.items()) for split in data.hub]


@pytest.mark.parametrize(("name", "split"), HUB)
def test_every_hub_split_is_pinned_and_maps_the_columns_of_its_task(name: str, split: str) -> None:
    place = DATASETS[name].hub[split]
    assert re.fullmatch(r"[0-9a-f]{40}", place.revision)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", place.id)
    # A subset is named where the source gives one; texts of a collection are in tables of their own.
    elsewhere = {"subset", *(("query", "document") if place.texts else ())}
    assert set(COLUMNS[DATASETS[name].task]) - elsewhere <= set(place.columns)
    assert all(pattern.endswith((".parquet", ".jsonl", ".jsonl.gz")) for part in place.files for pattern in part)


def test_one_repository_is_pinned_at_one_revision() -> None:
    pins = {(place.id, place.revision) for data in DATASETS.values() for place in data.hub.values()}
    assert len(pins) == len({repository for repository, _ in pins})


ARCHIVES = [place for data in DATASETS.values() for place in data.archive.values()]


def test_every_archive_has_a_reader() -> None:
    assert {place.reader for place in ARCHIVES} == set(READERS)


def test_an_archive_has_one_sha256_wherever_it_is_named() -> None:
    pairs = {pair for place in ARCHIVES for pair in place.urls.items()}
    assert len(pairs) == len({url for url, _ in pairs})


def test_archives_are_asked_for_over_https_and_public_copies_at_a_full_commit() -> None:
    for url in (url for place in ARCHIVES for url in place.urls):
        assert url.startswith("https://")
        if "githubusercontent" in url:
            assert re.search(r"/[0-9a-f]{40}/", url), url


def test_subjectivity_is_turned_to_sentevals_sense() -> None:
    assert DATASETS["subj"].hub["all"].labels == {"0": 1, "1": 0}


def test_a_head_is_trained_on_the_very_splits_of_which_its_corpus_is_the_test() -> None:
    # The text and order of the test pairs must be one: else scores would be compared across sources.
    for dataset in DATASETS.values():
        for slug, name in dataset.supervised.items():
            pool = find_corpus(name)
            assert pool.dataset.task == "regression"
            assert pool.splits == ("train", "dev", "test")
            assert find_corpus(slug).splits == ("test",)
            assert pool.dataset.splits == {split: dataset.splits[split] for split in pool.splits}
            for place in ("hub", "archive"):
                held = {split: where for split, where in getattr(dataset, place).items() if split in pool.splits}
                assert getattr(pool.dataset, place) == held


def test_pairs_without_a_gold_label_are_left_out_of_snli() -> None:
    assert {place.keep["label"] for place in DATASETS["snli"].hub.values()} == {(0, 1, 2)}


def test_texts_or_groups_are_resampled_where_they_recur() -> None:
    units = {name: data.resample for name, data in DATASETS.items()}
    assert units["lee"] == "texts"
    assert units["sickr"] == units["sts12"] == "groups"


def test_every_rated_corpus_names_the_scale_of_its_ratings() -> None:
    rated = {name: data.scale for name, data in load_catalogue().items() if "score" in COLUMNS[data.layout]}
    # The scales of SemEval (0 to 5), SICK (1 to 5), SimLex-999 and WordSim-353 (0 to 10), Lee (0 to 1), and of cosines.
    assert {name: scale for name, scale in rated.items() if not name.startswith("sts")} == {
        "lee": (0, 1), "simlex": (0, 10), "wordsim": (0, 10), "happy": (-1, 1),
        "sickr": (1, 5), "sickr-trained": (1, 5),
    }  # fmt: skip
    assert {scale for name, scale in rated.items() if name.startswith("sts")} == {(0, 5)}


def test_an_unknown_corpus_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(SourceError) as caught:
        find_corpus("sts99")
    assert all(slug in caught.value.expected for slug in PUBLISHED)


ENTRY = """
{name}:
  task: similarity
  title: t
  citation: c
  licence: l
  splits: {{test: 3}}
  corpora: {{{slug}: [test]}}
  {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "hub: {test: {id: a/b, revision: main, files: [[x]], columns: {}}}",
        f"hub: {{dev: {{id: a/b, revision: '{'0' * 40}', files: [[x]], columns: {{}}}}}}",
        f"hub: {{test: {{id: a/b, revision: '{'0' * 40}', files: [[x]], columns: {{}}, subsets: {{a: 1, b: 1}}}}}}",
        "mirror: {dev: [x.parquet]}",
        "archive: {dev: {urls: [x], reader: sick}}",
        "colour: blue",
        "package: {package: suites.mine.code, folder: x, files: [y], reader: word_pairs}",
        "package: {package: gensim, folder: ../other, files: [y], reader: word_pairs}",
        "package: {package: gensim, folder: test, files: [/etc/passwd], reader: word_pairs}",
        "resample: sentences",
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(ENTRY.format(name="pairs", slug="pairs", line=line))
    with pytest.raises(SentfoldError, match=r"unknown key|bad value|bad parameters"):
        load_catalogue(path)


def test_two_data_sets_cannot_claim_one_corpus(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text("".join(ENTRY.format(name=name, slug="pairs", line="") for name in ("one", "two")))
    with pytest.raises(SourceError, match="have a corpus of the same name"):
        load_catalogue(path)


def test_a_minimal_entry_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(ENTRY.format(name="pairs", slug="pairs", line="mirror: {test: [a.parquet, b.parquet]}"))
    assert isinstance(load_catalogue(path)["pairs"], Dataset)
