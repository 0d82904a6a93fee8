"""A small suite whose stages run in a tenth of a second each, with real DVC, real git and our own layout of reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from pipeline.__main__ import app
from sentfold.errors import SentfoldError
from sentfold.suggestions import message_of

DVC_YAML = """
vars: [plan.yaml]
stages:
  download:
    foreach: ${stages.download}
    do:
      wdir: ${root}
      cmd: python stage.py download ${key} ${suite}
      params: ["sizes.${key}"]
      deps: [stage.py, code/rules.py, code/texts.py]
      outs: ["data/${suite}/corpora/${key}"]
  embed:
    foreach: ${stages.embed}
    do:
      wdir: ${root}
      cmd: >-
        python stage.py embed ${item.corpus}
        ${item.encoder} ${suite}
      params: ["encoders.${item.encoder}"]
      deps: [stage.py, code, "data/${suite}/corpora/${item.corpus}/sentences.txt"]
      outs: ["data/${suite}/spaces/${item.encoder}/${item.corpus}.txt"]
  fold:
    foreach: ${stages.fold}
    do:
      wdir: ${root}
      cmd: python stage.py fold ${key} ${suite}
      params: [fold.step, {"${file}": [corpora]}]
      deps: [stage.py, code/rules.py, "data/${suite}/spaces/${key}"]
      outs: ["data/${suite}/spaces/${key}-lp"]
  evaluate:
    foreach: ${stages.evaluate}
    do:
      wdir: ${root}
      cmd: python stage.py evaluate ${key} ${suite}
      params: [evaluate]
      deps: [stage.py, code/rules.py, "data/${suite}/corpora", "data/${suite}/spaces/${key}"]
      outs: ["data/${suite}/resamples/${key}"]
      metrics: [{"reports/${suite}/scores/${key}.json": {cache: false}}]
  report:
    wdir: ${root}
    cmd: python stage.py report ${suite}
    params: [{"${file}": }]
    deps: [stage.py, code/layout.py, "data/${suite}/spaces", "reports/${suite}/scores"]
    outs:
      - reports/${suite}/tables: {cache: false}
      - reports/${suite}/summary.txt: {cache: false}
"""

PLAN = """
suite: quick
root: .
file: plan.yaml
corpora: [first, second]
spaces: [mini, mini-lp]
stages:
  download: {first: {}, second: {}}
  embed:
    first-mini: {corpus: first, encoder: mini}
    second-mini: {corpus: second, encoder: mini}
  fold: {mini: {}}
  evaluate: {mini: {}, mini-lp: {}}
"""

PARAMS = """
sizes: {first: 4, second: 6}
encoders:
  mini: {scale: 2.0, model: mini-1, sha256: {weights: 0f0f}}
fold: {step: 1.0e-1, comment: nothing reads this}
evaluate: {rounding: 2, shift: 0.5}
"""

# Scores are sums, so an answer can be worked out by hand; tables have the layout of the project's own.
STAGE_PY = """
    import json, os, runpy, sys
    from pathlib import Path
    import yaml

    verb, *names, suite = sys.argv[1:]
    read = lambda name: yaml.safe_load(Path(name).read_text())
    params = read("params.yaml") if verb != "report" else {}
    data, reports = Path("data") / suite, Path("reports") / suite

    def numbers(path):
        return [float(line) for line in path.read_text().split()]

    def write(path, values):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{value}\\n" for value in values))

    if verb == "download":
        filled = os.environ.get("SENTFOLD_FILLED", "").count(names[0])  # a mirror, which is no declared input
        rows = range(1, params["sizes"][names[0]] + filled + 1)
        write(data / "corpora" / names[0] / "sentences.txt", [row * 1.0 for row in rows])
        write(data / "corpora" / names[0] / "items.txt", [row % 2 for row in rows])
    elif verb == "embed":
        corpus, encoder = names
        # Another processor.
        scale = params["encoders"][encoder]["scale"] + float(os.environ.get("SENTFOLD_DISTURBED", 0))
        texts = numbers(data / "corpora" / corpus / "sentences.txt")
        write(data / "spaces" / encoder / f"{corpus}.txt", [scale * text for text in texts])
    elif verb == "fold":
        for corpus in read("plan.yaml")["corpora"]:
            values = numbers(data / "spaces" / names[0] / f"{corpus}.txt")
            write(data / "spaces" / f"{names[0]}-lp" / f"{corpus}.txt", [v - params["fold"]["step"] for v in values])
    elif verb == "evaluate":
        space, corpora = names[0], {}
        for corpus in sorted(path.stem for path in (data / "spaces" / space).iterdir()):
            value = sum(numbers(data / "spaces" / space / f"{corpus}.txt")) + params["evaluate"]["shift"]
            value = round(value, params["evaluate"]["rounding"])
            write(data / "resamples" / space / f"{corpus}.txt", [value - 1, value, value + 1])
            scores = {"spearman.all.cosine": {"low": value - 1, "high": value + 1, "value": value}}
            corpora[corpus] = {"n": 1, "scores": scores, "task": "similarity"}
        path = reports / "scores" / f"{space}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"corpora": corpora, "space": space, "suite": suite}
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\\n")
    elif verb == "report":
        runpy.run_path("code/layout.py")["write_tables"](reports, read("plan.yaml"))
"""

LAYOUT_PY = """
    import csv, json

    PROTOCOL = "spearman.all.cosine"
    LONG = ["space", "corpus", "task", "protocol", "n", "unit", "units", "value", "low", "high",
            "difference_to", "difference", "difference_low", "difference_high",
            "control", "control_difference", "control_low", "control_high", "reason"]
    TIDY = ["table", "panel", "origin", "row", "made_of", "corpus", "protocol", "unit", "value", "low", "high",
            "reason", "command"]

    def text(number):
        return f"{number:.2f}"

    def write_tables(reports, listed):
        files = {space: reports / "scores" / f"{space}.json" for space in listed["spaces"]}
        scores = {space: json.loads(path.read_text())["corpora"] for space, path in files.items()}
        score = lambda space, corpus: scores[space][corpus]["scores"][PROTOCOL]
        wide, long, tidy = [["space", *listed["corpora"]]], [LONG], [TIDY]
        cells = {"sts.csv": [], "scores.csv": [], "small.csv": []}

        def index(table, line, row, corpus, origin, key, columns, texts, protocol=PROTOCOL):
            found = {column: one for column, one in zip(columns, texts) if one}
            if found:
                cells[table].append([line, row, corpus, protocol, "x100", origin, key, found])

        for space in listed["spaces"]:
            wide.append([space, *(text(score(space, corpus)["value"]) for corpus in listed["corpora"])])
            for corpus in listed["corpora"]:
                own, first = score(space, corpus), score("mini", corpus)
                bounds = [text(own[key]) for key in ("value", "low", "high")]
                gap = own["value"] - first["value"]
                against = ["", "", "", ""] if space == "mini" else ["mini", text(gap), text(gap - 2), text(gap + 2)]
                # Another control than the baseline: the space itself, whose difference to itself is 0.
                control = ["", "", "", ""] if space == "mini" else [space, text(0), text(-1), text(1)]
                long.append([space, corpus, "similarity", PROTOCOL, 1, "items", 1, *bounds, *against, *control, ""])
                tidy.append(["small", "a", "measured", space, "m", corpus, PROTOCOL, "x100", *bounds, "", ""])
                key = [space, corpus, PROTOCOL]
                index("sts.csv", len(wide), space, corpus, "score", key, [corpus], bounds[:1])
                index("scores.csv", len(long), space, corpus, "score", key, LONG[7:10], bounds)
                for columns, (other, *texts) in ((LONG[11:14], against), (LONG[15:18], control)):
                    pair = [space, other, *key[1:]]
                    index("scores.csv", len(long), space, corpus, "difference", pair, columns, texts)
                index("small.csv", len(tidy), space, corpus, "score", key, TIDY[8:11], bounds)
        for space in listed["spaces"]:
            mean = sum(score(space, corpus)["value"] for corpus in listed["corpora"]) / len(listed["corpora"])
            tidy.append(["small", "a", "measured", space, "m", "average", PROTOCOL, "x100", text(mean), "", "", "", ""])
            index("small.csv", len(tidy), space, "average", "derived", [], ["value"], [text(mean)])
        tidy.append(["small", "a", "printed", "A paper", "", "first", "Spearman", "x100", "11.1", "", "", "", ""])
        index("small.csv", len(tidy), "A paper", "first", "printed", [0], ["value"], ["11.1"], "Spearman")
        (reports / "tables").mkdir(parents=True, exist_ok=True)
        for name, rows in (("sts", wide), ("scores", long), ("small", tidy)):
            with open(reports / "tables" / f"{name}.csv", "w", newline="") as stream:
                csv.writer(stream, lineterminator="\\n").writerows(rows)
        fields = ["line", "row", "corpus", "protocol", "unit", "origin", "key", "texts"]
        content = {"fields": fields, "schema": 1, "suite": listed["suite"], "tables": cells}
        (reports / "tables/cells.json").write_text(json.dumps(content) + "\\n")
        (reports / "summary.txt").write_text("\\n".join(" ".join(row) for row in wide) + "\\n")
"""


PUBLISHED = """
    source,table,model,dataset,metric,value,protocol,note
    mteb,1,A paper,first,spearman_x100,11.1,cosine,
    mteb,1,Another paper,first,spearman_x100,12.2,cosine,
    mteb,1,A paper,second,spearman_x100,13.3,cosine,
    mteb,1,A paper,first,pearson_x100,14.4,cosine,
    sbert-lp,1,A paper,first,spearman_x100,15.5,cosine,
"""


@dataclass
class Small:
    """A checkout of the suite."""

    root: Path

    def run(self, *command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout; it must succeed unless `check` is False."""
        done = subprocess.run(
            [sys.executable, "-m", *command] if command[0] in {"dvc", "pipeline"} else list(command),
            cwd=self.root, env={**environment_of(), **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def refusal(self, *command: str) -> str:
        """What a command of the pipeline says as it refuses to work; called in this process, which saves seconds."""
        with chdir(self.root):
            done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, SentfoldError), done.output or done.exception
        assert done.output == ""
        assert done.exception.exit_code == 2
        return message_of(done.exception)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the first occurrence of a text in a file, which must have it."""
        content = (self.root / path).read_text()
        assert old in content, f"{path} has no {old!r}"
        (self.root / path).write_text(content.replace(old, new, 1))

    def commit(self, message: str) -> str:
        """Commit everything that git does not ignore; returns the commit."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "--no-gpg-sign", "-m", message)
        return self.run("git", "rev-parse", "HEAD").stdout.strip()

    def copy(self, target: Path) -> Small:
        """The same checkout elsewhere."""
        shutil.copytree(self.root, target, symlinks=True)
        return Small(target)


def environment_of() -> dict[str, str]:
    """This interpreter first, our package importable, no user's git configuration."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[2]), **who, **quiet}


def make_small(root: Path) -> Small:
    """Write the suite, run it, commit it."""
    small = Small(root)
    (root / "code").mkdir(parents=True)
    files = {
        "dvc.yaml": DVC_YAML, "plan.yaml": PLAN, "params.yaml": PARAMS, "stage.py": STAGE_PY,
        "notes.txt": "no stage reads this\n", "code/layout.py": LAYOUT_PY, "code/rules.py": "RULE = 1\n",
        "pipeline/papers/published.csv": PUBLISHED,
        "code/texts.py": "TEXT = 1\n", "code/__init__.py": "", ".gitignore": "/data/\n__pycache__/\n/.sentfold/\n",
    }  # fmt: skip
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(content).lstrip("\n"))
    small.run("git", "init", "-q", "-b", "main")
    small.run("dvc", "init", "-q")
    (root / ".dvcignore").write_text("__pycache__/\n*.tmp\n.gitignore\n")
    (root / ".dvc/config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    small.run("dvc", "repro", "-q")
    small.commit("The small suite, run")
    return small
