"""The command line: `sentfold COMMAND`, or `python -m pipeline COMMAND`. Parses, calls, prints.

Every stage imports what it needs when it is called, so that no command waits for another's
libraries, and no edit of one stage makes another stale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline.lineage.commands import app as lineage_commands
from pipeline.lineage.commands import from_users_folder, slug
from pipeline.lineage.recorder import recorded
from pipeline.parent import die_with_parent
from sentfold.cli.checkout import program_name
from sentfold.decision.progress import progress_bars
from sentfold.errors import RunError, SentfoldError, SourceError, escape_controls
from sentfold.libraries import prepare_libraries
from sentfold.numeric_profile import is_supported, use_profile
from sentfold.suggestions import message_of, plain_error, prepare_streams, refuse_unreadable_addresses

if TYPE_CHECKING:
    from pipeline.base.suite import Suite

STAGES = "Stages (run by dvc.yaml; by hand they write the same files, unrecorded)"
RUNS = "Runs"
DOWNLOADERS = ("download", "embed", "pin-encoder", "pool", "sensitivity", "train", "word_counts", "word_vectors")


class StagesLast(TyperGroup):
    """Lists the commands that a user runs before those that dvc.yaml runs."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write two lists: the commands, and the stages."""
        for title, wants_stages in (("Commands", False), (STAGES, True)):
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(limit=200))
                        for name, command in self.commands.items()
                        if (getattr(command, "rich_help_panel", None) == STAGES) == wants_stages
                    ]
                )


app = typer.Typer(
    name="sentfold",
    cls=StagesLast,
    help="The referee of sentence geometry: embed sentences, fold them, score every space, report.",
    epilog="Start with `sentfold run`: it runs the quick suite and prints its table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

SUITES = "Which suite: quick, paper, paper-mirror, or your own."
SuiteOption = Annotated[str, typer.Option("--suite", "-s", callback=slug, help=SUITES)]
CorpusArgument = Annotated[str, typer.Argument(callback=slug, help="A corpus, e.g. stsb; see `sentfold catalogue`.")]
SpaceArgument = Annotated[str, typer.Argument(callback=slug, help="A space of the suite, e.g. <encoder>-lp.")]
EncoderArgument = Annotated[str, typer.Argument(callback=slug, help="An encoder of params.yaml.")]


def require_profile() -> None:
    """Refuse to make an artifact outside of the numeric profile; on a processor that lacks it, say what follows."""
    if not is_supported():
        print(
            "note: this processor has no AVX2, or this is not Linux on x86-64: bytes will differ from the committed "
            "ones, and scores by some hundredths",
            file=sys.stderr,
        )
    elif not use_profile():
        raise RunError(
            "a stage was started in a process that had loaded numpy",
            where="sentfold.numeric_profile",
            expected="the numeric profile, set before numpy is imported",
            got="numpy, numba or torch was imported first",
            remedy="start the stage by `python -m pipeline STAGE`, without a module that imports numpy at its start",
        )


def begin_stage() -> None:
    """What every stage does before it imports anything."""
    die_with_parent()
    require_profile()


@app.command(rich_help_panel=STAGES)
def download(
    corpus: CorpusArgument,
    suite: SuiteOption = "quick",
    skip_missing: Annotated[
        bool | None,
        typer.Option(
            "--skip-missing/--no-skip-missing",
            help="Record a corpus that the source lacks as a blank with its reason. Default: the suite's own line.",
        ),
    ] = None,
    record_hash: Annotated[
        bool,
        typer.Option(
            "--record-hash", help="Download the corpus's archives, record their sha256 in the catalogue, stop."
        ),
    ] = False,
) -> None:
    """Fetch one corpus; write its distinct sentences and its items."""
    from pipeline.base.suite import load_suite
    from pipeline.corpora.catalogue import find_corpus
    from pipeline.stages.download import download as fetch

    if record_hash:
        from pipeline.corpora.archive import record_hashes

        recorded = record_hashes(find_corpus(corpus).dataset)
        typer.echo("\n".join(f"{digest}  {url}" for url, digest in recorded.items()) or f"{corpus} has no archive")
        return
    begin_stage()
    result = fetch(corpus, load_suite(suite), skip_missing=skip_missing)
    if result.absent:
        typer.echo(f"{corpus}: blank, {result.absent}")
    else:
        typer.echo(f"{corpus}: {result.items} items over {result.sentences} distinct sentences")


@app.command(rich_help_panel=STAGES)
def vocabulary(
    tokenizer: Annotated[str, typer.Argument(callback=slug, help="A tokenizer, e.g. regex.")],
    suite: SuiteOption = "quick",
) -> None:
    """Count the words of the suite's sentences by one tokenizer."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.vocabulary import vocabulary as run

    typer.echo(f"{tokenizer}: {run(suite, tokenizer, load_suite(suite).worded_corpora)} words")


@app.command(name="word_counts", rich_help_panel=STAGES)
def word_counts(
    tokenizer: Annotated[str, typer.Argument(callback=slug, help="A tokenizer, e.g. regex.")],
    suite: SuiteOption = "quick",
) -> None:
    """Write the counts that the suite takes unigram probabilities from, for one tokenizer."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.word_counts import word_counts as run

    typer.echo(f"{tokenizer}: counts of {run(load_suite(suite), tokenizer)} words")


@app.command(name="word_vectors", rich_help_panel=STAGES)
def word_vectors(
    source: Annotated[str, typer.Argument(callback=slug, help="Word vectors of params.yaml, e.g. wordllama.")],
    suite: SuiteOption = "quick",
) -> None:
    """Write the vectors of one source for the vocabularies that want them."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.word_vectors import word_vectors as run

    tokenizers = tuple(load_suite(suite).stages["word_vectors"][source]["tokenizers"])
    for tokenizer, words in run(suite, source, tokenizers).items():
        typer.echo(f"{source}: {words} words of {tokenizer}")


@app.command(name="cluster_words", rich_help_panel=STAGES)
def cluster_words(
    clustering: Annotated[str, typer.Argument(callback=slug, help="A clustering of params.yaml, e.g. s3e.")],
    suite: SuiteOption = "quick",
) -> None:
    """Partition the words, and deal them into controls of the same sizes."""
    begin_stage()
    from pipeline.stages.cluster_words import cluster_words as run

    for partition, clusters in run(suite, clustering).items():
        typer.echo(f"{clustering} {partition}: {clusters} clusters")


@app.command(rich_help_panel=STAGES)
def embed(
    corpus: CorpusArgument,
    encoder: Annotated[str, typer.Option("--encoder", callback=slug, help="An encoder of params.yaml.")],
    suite: SuiteOption = "quick",
) -> None:
    """Encode the sentences of one corpus with one sentence transformer."""
    begin_stage()
    from pipeline.stages.embed import embed as run

    typer.echo(f"{corpus}: {run(suite, corpus, encoder)} vectors by {encoder}")


@app.command(rich_help_panel=STAGES)
def pool(
    corpus: CorpusArgument,
    encoder: Annotated[str, typer.Option("--encoder", callback=slug, help="An encoder of params.yaml.")],
    suite: SuiteOption = "quick",
) -> None:
    """Pool the layers of one transformer for one corpus, all poolings of the suite from one forward pass."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.pool import pool as run

    names = tuple(load_suite(suite).stages["pool"][f"{corpus}-{encoder}"]["spaces"])
    typer.echo(f"{corpus}: {run(suite, corpus, encoder, names)} vectors of {encoder} by {', '.join(names)}")


@app.command(rich_help_panel=STAGES)
def pooled(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Write the space of one pooling of every corpus."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.pooled import pooled as run

    chosen = load_suite(suite)
    item = chosen.stages["pooled"][space]
    run(suite, space, item["encoder"], item["name"], chosen.corpora)


@app.command(rich_help_panel=STAGES)
def postprocess(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Make a space by a change that is fitted on a corpus: BERT-flow or BERT-whitening."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.postprocess import postprocess as run

    chosen = load_suite(suite)
    run(suite, *chosen.made_from(space), chosen.corpora)


@app.command(rich_help_panel=STAGES)
def train(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Train one encoder on pairs with one seed; a training that was killed continues from its last checkpoint."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.train import train as run

    item = load_suite(suite).stages["train"][space]
    made = run(suite, space, item["training"], item["seed"])
    what = made.get("absent") or f"trained on {made['pairs']} pairs of {made['trained_on']}"
    typer.echo(f"{space}: {what}")


@app.command(name="embed_trained", rich_help_panel=STAGES)
def embed_trained(corpus: CorpusArgument, space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Encode the sentences of one corpus with one trained encoder."""
    begin_stage()
    from pipeline.stages.embed_trained import embed_trained as run

    typer.echo(f"{corpus}: {run(suite, corpus, space)} vectors by {space}")


@app.command(rich_help_panel=STAGES)
def encode(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Encode the sentences of every corpus with one encoder over word vectors."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.encode import encode as run

    chosen = load_suite(suite)
    for done in run(suite, space, chosen.corpora, wordless=chosen.wordless):
        fallbacks = "".join(f"; {number} {what}" for what, number in done.fallbacks.items())
        typer.echo(f"{done.corpus}: {done.sentences} vectors by {space}{fallbacks}")


@app.command(name="knn_graph", rich_help_panel=STAGES)
def knn_graph(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Find the nearest neighbours of every sentence in one space."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.knn_graph import knn_graph as run

    run(suite, space, load_suite(suite).corpora)


@app.command(name="reconstruction_weights", rich_help_panel=STAGES)
def reconstruction_weights(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Rebuild every sentence from its neighbours; write the weights that a space will be made of."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.reconstruction_weights import reconstruction_weights as run

    chosen = load_suite(suite)
    run(suite, *chosen.made_from(space), chosen.corpora)


@app.command(rich_help_panel=STAGES)
def eigensolve(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Solve for the bottom eigenvectors of reconstruction weights; write the space."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.eigensolve import eigensolve as run

    chosen = load_suite(suite)
    run(suite, *chosen.made_from(space), chosen.corpora)


@app.command(rich_help_panel=STAGES)
def transform(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Make a space from an encoder's vectors, and from the neighbour graph where the method reads it."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.transform import transform as run

    chosen = load_suite(suite)
    run(suite, *chosen.made_from(space), chosen.corpora)


@app.command(rich_help_panel=STAGES)
def sweep(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Score a grid on the suite's development corpus and choose; apart from it, on its test corpora."""
    begin_stage()
    from pipeline.stages.sweep import sweep as run

    _sweep_with(run, space, suite)


@app.command(name="sweep_clusters", rich_help_panel=STAGES)
def sweep_clusters(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Score a grid by k-means on a clustering corpus and choose; apart from it, on the other clustering corpora."""
    begin_stage()
    from pipeline.stages.sweep_clusters import sweep_clusters as run

    _sweep_with(run, space, suite)


def _sweep_with(run: Callable[[Suite, str, str], dict[str, Any]], space: str, suite: str) -> None:
    """Run a sweep of one space; print what it chose and what it cost."""
    from time import process_time

    from pipeline.base.suite import load_suite
    from pipeline.stages.sweep import describe_cost

    suite_plan = load_suite(suite)
    encoder, maker = suite_plan.made_from(space)
    chosen = run(suite_plan, encoder, maker)
    typer.echo(f"{maker}: {chosen['value']} on {chosen['corpus']}, best of {chosen['points']}, {chosen['parameters']}")
    typer.echo(describe_cost(encoder, maker, process_time()))


@app.command(rich_help_panel=STAGES)
def selected(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Make a space with the parameters that a sweep chose."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.selected import selected as run

    chosen = load_suite(suite)
    made = run(suite, *chosen.made_from(space), chosen.corpora)
    typer.echo(f"{space}: {made.method} {made.settings}")


@app.command(rich_help_panel=STAGES)
def sensitivity(
    encoder: Annotated[str, typer.Argument(callback=slug, help="A block of `sensitivity:` in params.yaml.")],
    suite: SuiteOption = "quick",
) -> None:
    """Score a word encoder against its hyper-parameters, one at a time; nothing is chosen by it."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.sensitivity import sensitivity as run

    written = run(load_suite(suite), encoder)
    absent = "".join(f"; {name}: {one['absent']}" for name, one in written["corpora"].items() if "absent" in one)
    typer.echo(f"{encoder}: {len(written['rows'])} points{absent}")


@app.command(rich_help_panel=STAGES)
def evaluate(space: SpaceArgument, suite: SuiteOption = "quick") -> None:
    """Score one space on every corpus of the suite, with bootstrap replicates."""
    begin_stage()
    from pipeline.base.artifacts import scores_path
    from pipeline.base.suite import load_suite
    from pipeline.stages.evaluate import evaluate as run

    chosen = load_suite(suite)
    chosen.check_space(space)
    typer.echo(f"{space}: is scored on {', '.join(chosen.corpora)}")
    run(chosen, space)
    typer.echo(f"{space}: {scores_path(suite, space)}, and the bootstrap replicates in data/{suite}/resamples/{space}")


@app.command(rich_help_panel=STAGES)
def search(
    search: Annotated[str, typer.Argument(callback=slug, help="A space and a search of plan.yaml, <space>-<search>.")],
    suite: SuiteOption = "quick",
) -> None:
    """Score one way to search in one space on every pool of the suite, with bootstrap replicates."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.search import search as run

    for pool, facts in run(load_suite(suite), search).items():
        typer.echo(f"{pool}: {facts.get('absent') or facts['scores']['nDCG@10']['value']}")


@app.command(rich_help_panel=STAGES)
def report(suite: SuiteOption = "quick") -> None:
    """Write the suite's tables, figures and summary."""
    begin_stage()
    from pipeline.base.suite import load_suite
    from pipeline.stages.report import report as run

    chosen = load_suite(suite)
    typer.echo(f"report: compares {len(chosen.spaces)} spaces on {len(chosen.corpora)} corpora")
    written = run(chosen)
    typer.echo(f"report: {written}, and index.html, which is all of it as one page; tables/, figures/, claims.md")


@app.command(name="new-suite", rich_help_panel=RUNS)
def new_suite(
    name: Annotated[str, typer.Argument(callback=slug, help="The suite's name: a-z, 0-9 and hyphens.")],
    file: Annotated[
        Path,
        typer.Argument(
            callback=from_users_folder, help="Pairs with scores, or texts with labels: CSV, TSV, JSONL, Parquet."
        ),
    ],
    encoder: Annotated[str, typer.Option(help="An encoder of params.yaml, e.g. all-MiniLM-L6-v2 or wl-sif.")],
    columns: Annotated[
        str | None, typer.Option(help="left=a,right=b,score=c or text=a,label=b; split=d. Default: by their names.")
    ] = None,
    manifolds: Annotated[
        str, typer.Option(help="What to make of the encoder's space: blocks of manifolds: in params.yaml.")
    ] = "lp,pca,whitening,abtt",
) -> None:
    """Write suites/NAME/ from a file of yours: its data, its spaces, its plan. No other file changes."""
    from pipeline.new_suite import write_suite
    from sentfold.cli.inputs import print_notes
    from sentfold.data.columns import parse_columns

    made = tuple(filter(None, manifolds.split(",")))
    folder, notes = write_suite(name, file, encoder, columns=parse_columns(columns), manifolds=made)
    print_notes(notes)
    typer.echo(f"{folder}: suite.yaml, catalogue.yaml, plan.yaml, and your data in {folder / name}")
    typer.echo(f"next: `sentfold run --suite {name}`, or `dvc repro {folder / 'dvc.yaml'}`; then commit {folder}")


@app.command(rich_help_panel=RUNS)
def show(suite: SuiteOption = "quick") -> None:
    """Print a suite's result table and where its report is."""
    from pipeline.base.suite import load_suite
    from pipeline.odd_files import refuse_odd_files
    from pipeline.summary import summary_text
    from sentfold.errors import ArtifactError

    folder = Path("reports") / load_suite(suite).suite
    refuse_odd_files(folder)
    try:
        typer.echo(summary_text(Path(), suite))
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactError(
            f"suite '{suite}' has no report yet", where=str(folder), remedy=f"run `sentfold run --suite {suite}`"
        ) from None


@app.command(rich_help_panel=RUNS)
def claims(
    name: Annotated[str, typer.Argument(help="A claim, as claims.md names it; all of them if none is named.")] = "",
    suite: SuiteOption = "quick",
) -> None:
    """Print the verdict on a claim of a paper, with its numbers, interval and control."""
    from pipeline.base.suite import load_suite
    from pipeline.odd_files import refuse_odd_files
    from pipeline.papers.ledger import show_claims

    refuse_odd_files(Path("reports") / load_suite(suite).suite)
    typer.echo(escape_controls(show_claims(suite, name)))


@app.command(rich_help_panel=RUNS)
def check(suite: SuiteOption = "quick") -> None:
    """Check params.yaml, the suite file, the catalogue and a mirror against each other; run nothing."""
    from pipeline.check import check_everything, mirror_changes, warn_of_selections

    checked = check_everything(suite)
    mirror_changes(checked)
    warning = warn_of_selections(checked)
    if warning:
        typer.echo(warning, err=True)
    typer.echo(f"suite '{suite}' and params.yaml are sound")


@app.command(rich_help_panel=RUNS)
def plan(
    suite: SuiteOption = "quick",
    check: Annotated[bool, typer.Option("--check", help="Write no plan; fail if plan.yaml is not right.")] = False,
) -> None:
    """Write plan.yaml: what follows from a suite's few lines, as dvc.yaml reads it."""
    from pipeline.plan import check_plan, mark_checked, write_plan

    if check:
        check_plan(suite)
        typer.echo(f"the plan of suite '{suite}' follows from its suite file: {mark_checked(suite)}")
    else:
        typer.echo(f"plan: {write_plan(suite)}")


@app.command(rich_help_panel=RUNS)
def catalogue() -> None:
    """List every corpus: its task, its size, its terms, and where it can be had."""
    from pipeline.corpora.catalogue import describe_catalogue

    typer.echo(describe_catalogue())


@app.command(name="pin-encoder", rich_help_panel=RUNS)
def pin_encoder(encoder: EncoderArgument) -> None:
    """Print the lines that pin an encoder in params.yaml: its commit on the hub now, or its files' sha256."""
    from pipeline.base.params import load_parameters
    from sentfold.encoders.model_folder import ModelSource, model_digests, pin_lines
    from sentfold.fold.texts import refuse_odd_settings

    source = load_parameters(ModelSource, f"encoders.{encoder}")
    if source.folder:
        refuse_odd_settings(encoder, Path(source.folder))
    if source.folder and (Path(source.folder) / "config.json").is_file():  # poolings and training need no modules.json
        digests = model_digests(Path(source.folder))
        typer.echo("\n".join(["    sha256:", *(f"      {name}: {digest}" for name, digest in digests.items())]))
    else:
        typer.echo(escape_controls(pin_lines(encoder, source)))


@app.command(name="fetch-vectors", rich_help_panel=RUNS)
def fetch_vectors(
    name: Annotated[str | None, typer.Argument(help="Word vectors, e.g. glove-840b; none: list them all.")] = None,
    record_hash: Annotated[
        bool, typer.Option("--record-hash", help="Where no sha256 is known yet, record that of the file that came.")
    ] = False,
    locations: Annotated[Path | None, typer.Option(help="Another list of locations.")] = None,
) -> None:
    """Download published word vectors into SENTFOLD_VECTORS; nothing else ever does."""
    from pipeline.corpora.fetch import matches
    from pipeline.words.published import LOCATIONS_FILE, describe_locations, load_locations, vectors_folder
    from pipeline.words.published import fetch_vectors as fetch
    from sentfold.data.tables import refuse_holes
    from sentfold.files import sha256_of

    listing = locations or LOCATIONS_FILE
    refuse_holes(listing)
    for key, entry in load_locations(listing).items():
        if Path(entry.file).name != entry.file or entry.file in ("", ".."):  # a list can be a stranger's
            raise SourceError(
                "a list of locations names a place outside of the folder of word vectors", where=str(listing),
                expected="file: a name without folders", got=entry.file,
            )  # fmt: skip
        target = vectors_folder() / entry.file
        if key == name and entry.sha256 and target.exists() and not matches(target, entry.sha256):
            raise SourceError(
                "there is another file of this name, which would be lost", where=str(target),
                expected=f"sha256 {entry.sha256}", got=f"sha256 {sha256_of(target)}", state="nothing was downloaded",
                remedy="move the file away, and run the command again",
            )  # fmt: skip
    typer.echo(escape_controls(describe_locations(listing, name)).rstrip())
    if name is not None:
        typer.echo(fetch(name, locations=listing, record=record_hash))


app.add_typer(lineage_commands)


def main() -> None:
    """Entry point: an error of sentfold is printed without a traceback; its exit code says whether to try again."""
    try:
        prepare_streams()
        prepare_libraries()
        if sys.argv[1:2] and sys.argv[1] in DOWNLOADERS:
            refuse_unreadable_addresses()
        with recorded(sys.argv[1:]), progress_bars():
            app(prog_name=program_name("pipeline"))
    except BrokenPipeError:
        raise
    except (SentfoldError, MemoryError, OSError) as error:
        if (plain := plain_error(error)) is None:
            raise
        print(message_of(plain), file=sys.stderr)
        sys.exit(plain.exit_code)


if __name__ == "__main__":
    main()
