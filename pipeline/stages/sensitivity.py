"""Stage `sensitivity`: how a word encoder's score depends on each hyper-parameter. It chooses no value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from pipeline.base.artifacts import absence, corpus_path, read_table, sensitivity_path
from pipeline.base.cases import refuse_far_rows, task_of
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.stages.encode import WordEncoderParameters, load_lexicon, read_texts
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import find_method
from sentfold.encoders.base.settings import make_settings
from sentfold.encoders.base.word_encoder import WordSettings
from sentfold.errors import ParameterError, SuiteError, located
from sentfold.files import write_json
from sentfold.measures.base.case import Case
from sentfold.measures.base.classifiers import LogisticSettings, has_splits, predict_by_logistic
from sentfold.measures.base.pairs import cosines, varies
from sentfold.settings import Parameters, Slug

# For each task, the protocol of the paper's figure.
PROTOCOLS = {"similarity": "pearson.all.cosine", "classification": "accuracy.logistic"}
DIGITS = 3  # of scores times 100; further digits depend on the processor

AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Number = int | float


class SensitivityParameters(Parameters):
    """A block of `sensitivity:` in params.yaml. Its name is that of a block of `word_encoders:`, which it varies.

    corpora    similarity corpora that are development data, or classification corpora without a test split
    values     hyper-parameter -> the values to try, ascending
    published  hyper-parameter -> the value in the paper, one of `values`. While one hyper-parameter varies, the
               others have their published values
    variants   name in the figure -> settings that all trials of the variant have
    fitted     the variants that are tried on classification corpora too, whose regressions take most of the time
    """

    corpora: Annotated[tuple[Slug, ...], AsTuple] = Field(min_length=1)
    values: dict[str, Annotated[tuple[Number, ...], AsTuple]] = Field(min_length=1)
    published: dict[str, Number]
    variants: dict[str, dict[str, Any]] = Field(min_length=1)
    fitted: Annotated[tuple[str, ...], AsTuple]

    @model_validator(mode="after")
    def _parts_agree(self) -> SensitivityParameters:
        if set(self.published) != set(self.values):
            raise ValueError("`published` and `values` have to name the same hyper-parameters")
        for name, values in self.values.items():
            if list(values) != sorted(set(values)):
                raise ValueError(f"the values of '{name}' have to ascend, and none may be repeated")
            if self.published[name] not in values:
                raise ValueError(f"the published {name}, {self.published[name]}, has to be one of its values")
        strange = [name for name in self.fitted if name not in self.variants]
        if strange:
            raise ValueError(f"`fitted` has to name variants, and there is no variant '{strange[0]}'")
        return self


class FoldParameters(LogisticSettings):
    """The keys of the block `evaluate` that this stage needs; other keys are ignored."""

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True)
class Trial:
    """One value of one hyper-parameter in one variant, and settings with the published values of all others."""

    variant: str
    parameter: str
    value: Number
    settings: WordSettings


@dataclass(frozen=True)
class TrialCorpus:
    """One corpus of the suite: its distinct sentences, and its items, which name the sentences by row."""

    corpus: str
    task: str
    texts: list[str]
    items: dict[str, list[Any]]


def sensitivity(chosen: Suite, name: str) -> dict[str, Any]:
    """Write surface.json of one word encoder: a score for each value of each hyper-parameter.

    Returns the content of the file. A corpus that is absent is listed with the reason.
    Raises ParameterError if the method refuses a value, SuiteError if a score would be of test data.
    Cost: one fit and one encoding of each corpus per distinct setting; on classification a nested regression too.
    Source: Yang, Zhu & Chen 2019, section 4, figure 2, doi:10.18653/v1/D19-1059
    """
    varied = load_parameters(SensitivityParameters, f"sensitivity.{name}")
    base = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
    rules = load_parameters(FoldParameters, "evaluate")
    trials = list(list_trials(name, varied, base))
    corpora = {corpus: load_corpus(chosen, corpus) for corpus in varied.corpora}
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), located(f"params.yaml: sensitivity.{name}"):
        lexicon = load_lexicon(chosen.suite, base)
        for corpus in corpora.values():
            if not isinstance(corpus, str):
                variants = varied.fitted if corpus.task == "classification" else tuple(varied.variants)
                wanted = [trial for trial in trials if trial.variant in variants]
                rows += score_trials(lexicon, base.method, corpus, wanted, rules)
    described = {
        slug: {"absent": corpus} if isinstance(corpus, str) else {"protocol": PROTOCOLS[corpus.task]}
        for slug, corpus in corpora.items()
    }
    content = {"corpora": described, "published": varied.published, "rows": rows, "vectors": base.vectors}
    write_json(sensitivity_path(chosen.suite, name), content)
    return content


def list_trials(name: str, varied: SensitivityParameters, base: WordEncoderParameters) -> Iterator[Trial]:
    """Every value of every hyper-parameter in every variant, checked by the model of the method.

    Raises ParameterError if the method refuses a value, or if the encoder is not fitted on each corpus alone.
    """
    where = f"params.yaml: sensitivity.{name}"
    if base.fit_on != "corpus":
        raise ParameterError(
            "hyper-parameters are varied on one corpus at a time",
            where=f"params.yaml: word_encoders.{name}.fit_on",
            expected="corpus",
            got=base.fit_on,
            remedy=f"remove the block sensitivity.{name}, or vary another encoder",
        )
    method = find_method(base.method)
    for variant, changes in varied.variants.items():
        for parameter, values in varied.values.items():
            for value in values:
                settings: dict[str, Any] = {**base.settings, **changes, **varied.published, parameter: value}
                settings["tokenizer"] = base.tokenizer
                yield Trial(variant, parameter, value, make_settings(method, settings, where=f"{where}.values"))


def load_corpus(chosen: Suite, corpus: str) -> TrialCorpus | str:
    """A corpus of the suite, or the reason why it is absent.

    Raises SuiteError if its scores would be of test data, ArtifactError if its items name what is no sentence.
    """
    if corpus not in chosen.corpora:
        return "the suite does not list it"
    source, target = corpus_path(chosen.suite, corpus, "sentences"), corpus_path(chosen.suite, corpus, "items")
    reason = absence(source, kind="sentences")
    if reason is not None:
        return reason
    task = task_of(target)
    items = read_table(target, kind=f"items.{task}").to_pydict()
    crossed = task == "classification" and not has_splits(items["split"])
    if not crossed and (task != "similarity" or corpus != chosen.development):
        raise SuiteError(
            f"'{corpus}' is neither development data nor scored by cross-validation",
            where=f"{chosen.written}: development",
            expected=f"{chosen.development or 'a development corpus'}, or a classification corpus without a test split",
            got=f"{corpus}, a corpus of {task}",
            remedy=f"remove {corpus} from `corpora` in params.yaml: sensitivity",
        )
    texts = read_texts(source)
    refuse_far_rows(items, len(texts), where=f"{target}, {source}")
    return TrialCorpus(corpus, task, texts, items)


def score_trials(
    lexicon: Lexicon, method: str, corpus: TrialCorpus, trials: list[Trial], rules: FoldParameters
) -> list[dict[str, Any]]:
    """One row per trial. The published values of all hyper-parameters give equal settings, scored once."""
    known: dict[str, float | None] = {}
    rows = []
    for trial in tqdm(trials, desc=corpus.corpus, unit=" points", disable=None):
        settings = trial.settings.model_dump_json()
        if settings not in known:
            encoder = find_method(method).build(lexicon, trial.settings)
            vectors = encoder.fit(corpus.texts).encode(corpus.texts).vectors
            known[settings] = score_vectors(corpus, vectors, rules)
        rows.append(
            {
                "corpus": corpus.corpus,
                "parameter": trial.parameter,
                "score": known[settings],
                "value": trial.value,
                "variant": trial.variant,
            }
        )
    return rows


def score_vectors(corpus: TrialCorpus, vectors: Any, rules: FoldParameters) -> float | None:
    """The score of vectors times 100: Pearson of cosines, or accuracy of nested logistic regression.

    vectors  (n, d), one per sentence; scored as `evaluate` scores a stored space: as float32, and for a regression
             scaled to a median length of 1
    Returns None if the correlation is undefined.
    """
    from scipy.stats import pearsonr  # imported here, because the check of parameters would be slower with it

    case = Case(corpus.corpus, corpus.task, corpus.items, {}, np.asarray(vectors, dtype=np.float32))
    if corpus.task == "similarity":
        cosine, _ = cosines(case.vectors, case.pairs)
        human = np.asarray(corpus.items["score"], dtype=np.float64)
        if not (varies(cosine) and varies(human)):
            return None
        return round(100 * float(pearsonr(cosine, human).statistic), DIGITS)
    x = case.scaled[np.asarray(corpus.items["row"])]
    predictions = predict_by_logistic(x, case.labels, corpus.items["split"], rules)
    return round(100 * float((predictions.predicted == case.labels[predictions.items]).mean()), DIGITS)
