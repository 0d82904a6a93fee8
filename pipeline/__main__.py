"""The command line: `sentfold COMMAND`, or `python -m pipeline COMMAND`. Parses, calls, prints.

Every stage imports what it needs when it is called, so that no command waits for another's
libraries, and no edit of one stage makes another stale.
"""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import ParameterError, SentfoldError
from pipeline.hiding import hide_pandas
from pipeline.leaving import die_with, wrote_everything
from pipeline.lineage.commands import app as lineage_commands
from pipeline.lineage.recorder import exit_code, recorded

app = typer.Typer(
    name="sentfold",
    help="The referee of sentence geometry: embed sentences, fold them, score every space, report.",
    epilog="Start with `sentfold repro`: it runs the quick suite and prints its table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

STAGES = "Stages (run by dvc.yaml; by hand they write the same files, unrecorded)"
RUNS = "Runs"


def slug(name: str) -> str:
    """A name given on the command line, refused unless it is one: names become paths."""
    from pipeline.params import check_slug

    try:
        return check_slug(name)
    except ValueError as error:
        raise ParameterError("a name cannot be used", where="the command line", got=str(error)) from None


SUITES = "Which suite: quick, paper, paper-mirror, or your own."
SuiteOption = Annotated[str, typer.Option("--suite", "-s", callback=slug, help=SUITES)]
CorpusArgument = Annotated[str, typer.Argument(callback=slug, help="A corpus, e.g. stsb; see `sentfold catalogue`.")]
EncoderArgument = Annotated[str, typer.Argument(callback=slug, help="An encoder of params.yaml, e.g. minilm.")]


def die_with_parent() -> None:
    """Make the kernel kill this stage when DVC dies: an orphan would go on and write its output later."""
    if not die_with(os.getppid()):
        sys.exit("the parent process died before the stage began")


def begin_stage(*, pandas: bool = False) -> None:
    """What every stage does before it imports anything.

    pandas  whether it may use pandas, as `datasets` does when it parses a file
    """
    die_with_parent()
    _ending.at_once = True
    if not pandas:
        hide_pandas()


@dataclass
class _Ending:
    """How this process is to end: at once, as a stage does, with a code that is known when all is done."""

    at_once: bool = False
    code: int | None = None

    def come(self) -> None:
        """The last thing that a process does."""
        if self.at_once and self.code is not None and wrote_everything():
            os._exit(self.code)


_ending = _Ending()


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
    from pipeline.corpora.catalogue import find_corpus
    from pipeline.corpora.download import download as fetch
    from pipeline.suite import load_suite

    if record_hash:
        from pipeline.corpora.archive import record_hashes

        recorded = record_hashes(find_corpus(corpus).dataset)
        typer.echo("\n".join(f"{digest}  {url}" for url, digest in recorded.items()) or f"{corpus} has no archive")
        return
    begin_stage(pandas=True)
    result = fetch(corpus, load_suite(suite), skip_missing=skip_missing)
    if result.absent:
        typer.echo(f"{corpus}: blank, {result.absent}")
    else:
        typer.echo(f"{corpus}: {result.items} items over {result.sentences} distinct sentences")


@app.command(rich_help_panel=STAGES)
def vocabulary(suite: SuiteOption = "quick") -> None:
    """Count the words of the suite's sentences by each of its tokenisers."""
    begin_stage()
    from pipeline.suite import load_suite
    from pipeline.words.vocabulary import vocabulary as run

    chosen = load_suite(suite)
    for tokenizer, words in run(suite, chosen.makers.tokenizers, chosen.worded_corpora).items():
        typer.echo(f"{tokenizer}: {words} words")


@app.command(name="word_counts", rich_help_panel=STAGES)
def word_counts(suite: SuiteOption = "quick") -> None:
    """Write the counts that the suite takes unigram probabilities from."""
    begin_stage(pandas=True)
    from pipeline.suite import load_suite
    from pipeline.words.word_counts import word_counts as run

    for tokenizer, words in run(load_suite(suite)).items():
        typer.echo(f"{tokenizer}: counts of {words} words")


@app.command(name="word_vectors", rich_help_panel=STAGES)
def word_vectors(
    source: Annotated[str, typer.Argument(callback=slug, help="Word vectors of params.yaml, e.g. wordllama.")],
    suite: SuiteOption = "quick",
) -> None:
    """Write the vectors of one source for the suite's vocabularies."""
    begin_stage()
    from pipeline.suite import load_suite
    from pipeline.words.vectors import word_vectors as run

    for tokenizer, words in run(suite, source, load_suite(suite).makers.tokenizers).items():
        typer.echo(f"{source}: {words} words of {tokenizer}")


@app.command(name="cluster_words", rich_help_panel=STAGES)
def cluster_words(
    clustering: Annotated[str, typer.Argument(callback=slug, help="A clustering of params.yaml, e.g. s3e.")],
    suite: SuiteOption = "quick",
) -> None:
    """Partition the words, and deal them into controls of the same sizes."""
    begin_stage()
    from pipeline.words.clusters import cluster_words as run

    for partition, clusters in run(suite, clustering).items():
        typer.echo(f"{clustering} {partition}: {clusters} clusters")


@app.command(rich_help_panel=STAGES)
def embed(
    corpus: CorpusArgument,
    encoder: Annotated[str, typer.Option("--encoder", callback=slug, help="An encoder of params.yaml.")] = "minilm",
    suite: SuiteOption = "quick",
) -> None:
    """Encode the sentences of one corpus with one sentence transformer."""
    begin_stage(pandas=True)
    from pipeline.encoders.embed import embed as run

    typer.echo(f"{corpus}: {run(suite, corpus, encoder)} vectors by {encoder}")


@app.command(rich_help_panel=STAGES)
def encode(
    encoder: Annotated[str, typer.Argument(callback=slug, help="A word encoder of params.yaml, e.g. wl-sif.")],
    suite: SuiteOption = "quick",
) -> None:
    """Encode the sentences of every corpus with one encoder over word vectors."""
    begin_stage()
    from pipeline.encoders.encode import encode as run
    from pipeline.suite import load_suite

    chosen = load_suite(suite)
    for done in run(suite, encoder, chosen.corpora, wordless=chosen.wordless):
        fallbacks = "".join(f"; {number} {what}" for what, number in done.fallbacks.items())
        typer.echo(f"{done.corpus}: {done.sentences} vectors by {encoder}{fallbacks}")


@app.command(name="knn_graph", rich_help_panel=STAGES)
def knn_graph(encoder: EncoderArgument, suite: SuiteOption = "quick") -> None:
    """Find the exact nearest neighbours of every sentence."""
    begin_stage()
    from pipeline.manifold.knn_graph import knn_graph as run
    from pipeline.suite import load_suite

    run(suite, encoder, load_suite(suite).corpora)


ManifoldOption = Annotated[str, typer.Option("--manifold", callback=slug, help="A manifold of params.yaml.")]


@app.command(name="reconstruction_weights", rich_help_panel=STAGES)
def reconstruction_weights(
    encoder: EncoderArgument, manifold: ManifoldOption = "lp", suite: SuiteOption = "quick"
) -> None:
    """Rebuild every sentence from its neighbours; write the weights."""
    begin_stage()
    from pipeline.manifold.reconstruction_weights import reconstruction_weights as run
    from pipeline.suite import load_suite

    run(suite, encoder, manifold, load_suite(suite).corpora)


@app.command(rich_help_panel=STAGES)
def eigensolve(encoder: EncoderArgument, manifold: ManifoldOption = "lp", suite: SuiteOption = "quick") -> None:
    """Solve for the bottom eigenvectors; write the space <encoder>-<manifold>."""
    begin_stage()
    from pipeline.manifold.eigensolve import eigensolve as run
    from pipeline.suite import load_suite

    run(suite, encoder, manifold, load_suite(suite).corpora)


@app.command(rich_help_panel=STAGES)
def transform(
    encoder: EncoderArgument,
    transform: Annotated[str, typer.Option("--transform", callback=slug, help="A transform of params.yaml.")] = "pca",
    suite: SuiteOption = "quick",
) -> None:
    """Make a control, or a manifold by landmarks, of an encoder's vectors; write <encoder>-<transform>."""
    begin_stage()
    from pipeline.manifold.transform import transform as run
    from pipeline.suite import load_suite

    run(suite, encoder, transform, load_suite(suite).corpora)


@app.command(name="graph_transform", rich_help_panel=STAGES)
def graph_transform(
    encoder: EncoderArgument,
    transform: Annotated[
        str, typer.Option("--transform", callback=slug, help="A graph transform of params.yaml.")
    ] = "npe",
    suite: SuiteOption = "quick",
) -> None:
    """Map an encoder's space by its neighbour graph; write the space <encoder>-<transform>."""
    begin_stage()
    from pipeline.manifold.graph_transform import graph_transform as run
    from pipeline.suite import load_suite

    run(suite, encoder, transform, load_suite(suite).corpora)


SelectionOption = Annotated[str, typer.Option("--selection", callback=slug, help="A grid of params.yaml.")]


@app.command(rich_help_panel=STAGES)
def sweep(encoder: EncoderArgument, selection: SelectionOption = "lp-selected", suite: SuiteOption = "quick") -> None:
    """Score a grid on the suite's development corpus and choose; apart from it, on its test corpora."""
    begin_stage()
    from time import process_time

    from pipeline.selection.budget import describe_cost
    from pipeline.selection.sweep import sweep as run
    from pipeline.suite import load_suite

    chosen = run(load_suite(suite), encoder, selection)
    typer.echo(
        f"{selection}: {chosen['value']} on {chosen['corpus']}, best of {chosen['points']}, {chosen['parameters']}"
    )
    typer.echo(describe_cost(encoder, selection, process_time()))


@app.command(rich_help_panel=STAGES)
def selected(
    encoder: EncoderArgument, selection: SelectionOption = "lp-selected", suite: SuiteOption = "quick"
) -> None:
    """Make an encoder's space with the parameters that a sweep chose; write <encoder>-<selection>."""
    begin_stage()
    from pipeline.selection.selected import selected as run
    from pipeline.suite import load_suite

    typer.echo(f"{encoder}-{selection}: {run(suite, encoder, selection, load_suite(suite).corpora)}")


@app.command(rich_help_panel=STAGES)
def sensitivity(
    encoder: Annotated[str, typer.Argument(callback=slug, help="A block of report.sensitivity in params.yaml.")],
    suite: SuiteOption = "quick",
) -> None:
    """Score a word encoder against its hyper-parameters, one at a time; nothing is chosen by it."""
    begin_stage()
    from pipeline.selection.sensitivity import sensitivity as run
    from pipeline.suite import load_suite

    written = run(load_suite(suite), encoder)
    absent = "".join(f"; {name}: {one['absent']}" for name, one in written["corpora"].items() if "absent" in one)
    typer.echo(f"{encoder}: {len(written['rows'])} points{absent}")


@app.command(rich_help_panel=STAGES)
def evaluate(
    space: Annotated[str, typer.Argument(callback=slug, help="A space of the suite, e.g. minilm-lp.")],
    suite: SuiteOption = "quick",
) -> None:
    """Score one space on every corpus of the suite, with bootstrap replicates."""
    begin_stage()
    from pipeline.evaluate.evaluate import evaluate as run
    from pipeline.suite import load_suite

    run(load_suite(suite), space)


@app.command(rich_help_panel=STAGES)
def report(suite: SuiteOption = "quick") -> None:
    """Write the suite's tables, figures and summary."""
    begin_stage(pandas=True)
    from pipeline.report.report import report as run
    from pipeline.suite import load_suite

    typer.echo(f"report: {run(load_suite(suite))}")


@app.command(rich_help_panel=RUNS)
def repro(suite: SuiteOption = "quick") -> None:
    """Run the stale stages of a suite one after another (`dvc repro`) and print its table."""
    from pipeline.check import check_everything, mirror_changes

    mirror_changes(check_everything(suite))
    from flows.repro import plain_repro

    plain_repro(suite, Path.cwd())
    show(suite)


@app.command(rich_help_panel=RUNS)
def run(
    suite: SuiteOption = "quick",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Stages at a time, where they are independent.")] = 2,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="A stage, a group like `embed`, or an output's path; and all it needs."),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="Limits and retries; run.yaml if none is named.")] = None,
    runner: Annotated[str, typer.Option(help="Where stages run: threads, or dask.")] = "threads",
    address: Annotated[str | None, typer.Option(help="Of a Dask scheduler; none: --jobs processes of our own.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for a run that holds the checkout.")] = True,
) -> None:
    """Run the stale stages of a suite as a Prefect flow, independent ones in parallel."""
    from flows.reproduce import reproduce

    more = {"targets": tuple(target or ()), "profile": profile, "runner": runner, "address": address}
    reproduce(suite, jobs, Path.cwd(), wait=wait, check=True, **more)
    if not target:
        show(suite)


@app.command(rich_help_panel=RUNS)
def deploy(
    prefect_file: Annotated[Path, typer.Option(help="Deployments, from the root of the checkout.")] = Path(
        "prefect.yaml"
    ),
) -> None:
    """Register the deployments of prefect.yaml, with pool and automation, at the configured Prefect server."""
    from flows.deploy import deploy as register

    typer.echo(register(Path.cwd(), prefect_file))


@app.command(rich_help_panel=RUNS)
def show(suite: SuiteOption = "quick") -> None:
    """Print a suite's result table and where its report is."""
    from pipeline.errors import ArtifactError
    from pipeline.suite import load_suite

    folder = Path("reports") / load_suite(suite).suite
    try:
        typer.echo(folder.joinpath("summary.txt").read_text(encoding="utf-8"))
    except OSError:
        raise ArtifactError(
            f"suite '{suite}' has no report yet", where=str(folder), remedy=f"run `sentfold repro --suite {suite}`"
        ) from None
    typer.echo(f"report: {folder / 'report.md'}")


@app.command(rich_help_panel=RUNS)
def page(suite: SuiteOption = "quick") -> None:
    """Make the report's page with artifact hashes and pair texts, below data/: it quotes corpora."""
    from pipeline.report.local_page import write_local_page
    from pipeline.suite import load_suite

    typer.echo(f"page: {write_local_page(load_suite(suite))}")


@app.command(rich_help_panel=RUNS)
def claims(
    name: Annotated[str, typer.Argument(help="A claim, as claims.md names it; all of them if none is named.")] = "",
    suite: SuiteOption = "quick",
) -> None:
    """Print the verdict on a claim of a paper, with its numbers, interval and control."""
    from pipeline.report.claim_show import show_claims
    from pipeline.suite import load_suite

    typer.echo(show_claims(load_suite(suite).suite, name))


@app.command(rich_help_panel=RUNS)
def check(suite: SuiteOption = "quick") -> None:
    """Check params.yaml, the suite file and the catalogue against each other; run nothing."""
    from pipeline.check import check_everything

    check_everything(suite)
    typer.echo(f"suite '{suite}' and params.yaml are sound")


@app.command(rich_help_panel=RUNS)
def catalogue() -> None:
    """List every corpus: its task, its size, its terms, and where it can be had."""
    from pipeline.corpora.catalogue import describe_catalogue

    typer.echo(describe_catalogue())


@app.command(name="encode-with", rich_help_panel=RUNS)
def encode_with(
    method: Annotated[str, typer.Argument(help="average, sif, usif, pmeans, dct, vlawe, s3e, lase or gem.")],
    sentences: Annotated[Path, typer.Option(help="Sentences to encode: UTF-8, one a line.")],
    fit_on: Annotated[Path, typer.Option(help="Sentences to learn from: UTF-8, one a line; repeats count.")],
    words: Annotated[Path, typer.Option(help="Parquet: word, vector.")],
    counts: Annotated[Path, typer.Option(help="Parquet: word, count; also of words without a vector.")],
    out: Annotated[Path, typer.Option(help="Parquet to write: vector, in the order of the sentences.")],
    clusters: Annotated[Path | None, typer.Option(help="Parquet: word, cluster.")] = None,
    centroids: Annotated[Path | None, typer.Option(help="Parquet: cluster, vector.")] = None,
    directions: Annotated[
        Path | None, typer.Option(help="Parquet: vector, singular_value; used instead of a fit, one direction a row.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="published (default) or released.")] = None,
    component: Annotated[
        str | None,
        typer.Option(
            help="Directions to remove: joint, over all of --fit-on; none; or per-side: each file holds the first "
            "sides of all pairs, then the second sides, and each half is fitted and encoded apart (--set "
            "sides=interleaved: sides take turns). Where --sentences is one side of --fit-on, it is fitted on itself.",
        ),
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="whitespace, regex, wordpunct or treebank.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the method.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="More of --set.")] = None,
) -> None:
    """Encode a file of sentences by one method, with words, counts and clusters of your own."""
    from pipeline.encoders.encode_with import Files, Request
    from pipeline.encoders.encode_with import encode_with as run

    files = Files(sentences, fit_on, words, counts, clusters, centroids, directions)
    request = Request(method, variant, component, tokenizer, [*(settings or []), *(more or [])])
    report = run(files, request, out)
    typer.echo(f"{out}: {report.sentences} vectors of {report.dimension} dimensions by {method}")
    for remark in [*report.remarks, *(f"{what}: {number}" for what, number in report.fallbacks.items() if number)]:
        typer.echo(f"  {remark}")


@app.command(name="pin-encoder", rich_help_panel=RUNS)
def pin_encoder(encoder: EncoderArgument) -> None:
    """Print the lines that pin an encoder in params.yaml: its commit on the hub now, or its files' sha256."""
    from pipeline.encoders.pin import pin_lines

    typer.echo(pin_lines(encoder))


@app.command(name="fetch-vectors", rich_help_panel=RUNS)
def fetch_vectors(
    name: Annotated[str | None, typer.Argument(help="Word vectors, e.g. glove-840b; none: list them all.")] = None,
    record_hash: Annotated[
        bool, typer.Option("--record-hash", help="Where no sha256 is known yet, record that of the file that came.")
    ] = False,
    locations: Annotated[Path | None, typer.Option(help="Another list of places than ours.")] = None,
) -> None:
    """Download published word vectors into SENTFOLD_VECTORS; nothing else ever does."""
    from pipeline.words.fetch import describe_download
    from pipeline.words.fetch import fetch_vectors as fetch
    from pipeline.words.locations import LOCATIONS_FILE, describe_locations

    if name is None:
        typer.echo(describe_locations().rstrip())
        return
    typer.echo(describe_download(name, locations=locations or LOCATIONS_FILE))
    typer.echo(fetch(name, locations=locations or LOCATIONS_FILE, record=record_hash))


@app.command(name="map-landmarks", rich_help_panel=RUNS)
def map_landmarks(
    source: Annotated[Path, typer.Argument(help="A Parquet file with a column `vector`, or a folder of such files.")],
    target: Annotated[Path, typer.Argument(help="The Parquet file to write; it is replaced if it exists.")],
    landmarks: Annotated[int, typer.Option(help="Rows that are embedded; all others are mapped by them.")] = 10_000,
    selection: Annotated[
        str, typer.Option(help="How landmarks are chosen: random, or kmeans++ for spread.")
    ] = "random",
    neighbors: Annotated[int, typer.Option(help="k, neighbours that rebuild a row.")] = 30,
    components: Annotated[int, typer.Option(help="p, dimension of the new vectors.")] = 128,
    regularization: Annotated[float, typer.Option(help="Of the weights, as a fraction of the Gram's trace.")] = 1e-3,
    scaling: Annotated[str, typer.Option(help="Of each dimension: unit, quarter or half.")] = "unit",
    tolerance: Annotated[float, typer.Option(help="Largest residual, as a fraction of the p-th eigenvalue.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of the choice of landmarks and of the solver's start.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Threads; they change no byte.")] = 2,
) -> None:
    """Fold vectors by the million: embed landmarks, map every row by its neighbours among them."""
    from pipeline.manifold.landmarks_io import embed_large

    record = embed_large(
        source,
        target,
        landmarks=landmarks,
        selection=selection,
        neighbors=neighbors,
        components=components,
        regularization=regularization,
        scaling=scaling,
        tolerance=tolerance,
        seed=seed,
        workers=workers,
        verbose=sys.stderr.isatty(),
    )
    typer.echo(f"{target}: {record['rows']} rows by {record['notes']['landmarks']} landmarks")


@app.command(name="fold-large", rich_help_panel=RUNS)
def fold_large(
    source: Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them, with a column text or vector.")],
    target: Annotated[Path, typer.Argument(help="The folder to write; the answer is its dataset `folded`.")],
    encoder: Annotated[str | None, typer.Option(help="Of texts: minilm, wordllama, ... None: column vector.")] = None,
    manifold: Annotated[str, typer.Option(callback=slug, help="A landmark manifold of params.yaml.")] = "lp-landmark",
    landmarks: Annotated[int | None, typer.Option(help="Rows that are embedded, if not as params.yaml has it.")] = None,
    tolerance: Annotated[float | None, typer.Option(help="Of the solver, if not as params.yaml has it.")] = None,
    partition_rows: Annotated[int, typer.Option(min=1, help="Of a partition, which is what a task takes.")] = 16_384,
    workers: Annotated[int, typer.Option(min=0, help="Processes on this machine; 0: this one, without Dask.")] = 2,
    memory_limit: Annotated[str, typer.Option(help="Of each of them; one that exceeds it is ended.")] = "2GB",
    address: Annotated[str | None, typer.Option(help="A Dask scheduler, e.g. tcp://host:8786, instead.")] = None,
) -> None:
    """Embed and fold one huge corpus by row partitions on Dask workers; goes on where it was killed."""
    from pipeline.partitions.fold import fold_partitions
    from pipeline.partitions.request import request_by_name

    request = request_by_name(encoder, manifold, landmarks=landmarks, tolerance=tolerance, rows=partition_rows)
    if workers or address:
        from flows.partitions import fold_on_dask

        summary, uses = fold_on_dask(
            source, target, request, address=address, workers=workers, memory_limit=memory_limit
        )
        typer.echo("\n".join(map(str, uses)))
    else:
        summary = fold_partitions(source, target, request)
    typer.echo(f"{target / 'folded'}: {summary}")


app.add_typer(lineage_commands)


def main() -> None:
    """Entry point of the console script: our errors are printed whole, without a traceback, and exit 2."""
    atexit.register(_ending.come)  # handlers that a stage's libraries register are called before it
    try:
        with recorded(sys.argv[1:]):
            app()
    except SentfoldError as error:
        print(f"error: {error}", file=sys.stderr)
        _ending.code = 2
        sys.exit(2)
    except SystemExit as left:
        _ending.code = exit_code(left)
        raise


if __name__ == "__main__":
    main()
