"""What is refused in the folder of a sentence transformer: code, pickles, and more than its weights are."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sentfold.errors import EncoderError, first_line

SPACE_MODULE = "sentfold.decision.module.SpaceModule"  # imported from the installed library, not from the folder
MOST_MODULES = 100  # entries of modules.json
MOST_LAYERS = 64  # of a configuration; as many as the weight files have tensors, where these are more
LONGEST_HEADER = 100_000_000  # bytes; the library safetensors has the same bound
# In the keys of a configuration that count layers, or other things that a library makes one by one.
LAYERS = (
    "layer", "hidden_group", "inner_group", "depth", "blocks", "block_sizes", "experts", "num_labels",
    "attention_types",
)  # fmt: skip
# The file and the keys of a module's configuration whose numbers multiply to at most the number of its weights. The
# library makes the weights in memory before it reads the file that has them.
SIZES = {
    "config.json": (("in_features", "out_features"), ("dimension",)),
    "lstm_config.json": (("hidden_dim", "hidden_dim"), ("hidden_dim", "embedding_dimension")),
    "cnn_config.json": (("in_embedding_dimension", "out_channels", "kernel_sizes"),),
}
# A transformer may have twice as many numbers as its files have bytes (T5 with the weights of its encoder alone), and
# this number of others (masks and tables of positions).
MOST_OTHER_NUMBERS = 2**24
# The modules that may be in a list of modules. Others load further modules (Router, SentenceTransformer), or cannot
# be encoded with here (BoW and WordEmbeddings have no tokenizer of transformers).
MODULES = {"CNN", "Dense", "Dropout", "LSTM", "LayerNorm", "Normalize", "Pooling", "StaticEmbedding", "Transformer"} | {
    "WeightedLayerPooling", "WordWeights",
}  # fmt: skip
# What sentence_bert_config.json may say to the functions of transformers. Other arguments choose files, run code
# (weights_only: false; an attention of the hub), or take the place of configurations that are checked here.
ARGUMENTS = re.compile("(model|tokenizer|processor|config)_(args|kwargs)")
SAFE_ARGUMENTS = {"dtype", "torch_dtype", "add_pooling_layer", "padding_side"}
SAFE_ATTENTIONS = {"eager", "sdpa"}
# The other keys that the configuration of a Transformer module may have.
SAFE_KEYS = {
    "max_seq_length",
    "do_lower_case",
    "transformer_task",
    "modality_config",
    "module_output_name",
    "unpad_inputs",
    "query_length",
    "document_length",
    "query_expansion",
}
# The keys of tokenizer_config.json that name files, except two that no library reads.
TOKENIZER_FILES = re.compile("vocab|merges|.*_spm|(?!special_tokens_map|full_tokenizer).*_files?")
OWN_TOKENIZER = re.compile(r"tokenizer(\.[\w.]+)?\.json")  # of the model's folder
MOST_GROWTH = 1_000  # times that the replacements of a tokenizer make a text longer


def refuse_unsafe(encoder: str, folder: Path) -> None:
    """Raise EncoderError if the folder can run code, has weights only as a pickle, or asks for more than its weights.

    A folder without modules.json, as transformers saves a model, is checked too. Nothing is read before it is known to
    be a regular file. A file that can take the place of pinned ones is refused.
    """
    refuse_special_files(encoder, folder)
    if (folder / "modules.json").exists():
        _refuse_modules(encoder, folder)
    _refuse_pickles(encoder, folder)
    _refuse_arguments(encoder, folder)
    default_prompt(encoder, folder)
    _refuse_tokenizers(encoder, folder)
    _refuse_kernels(encoder, folder)
    _refuse_huge_numbers(encoder, folder)
    _refuse_huge_models(encoder, folder)


def refuse_special_files(encoder: str, folder: Path) -> None:
    """Raise EncoderError for a pipe, a device, a broken link, or a link to a folder.

    A pipe is waited for without end. The files behind a link to a folder have no pin; a link to a file is read as the
    file (the hub's cache consists of such links).
    """
    for path in everything(folder):
        if not (path.is_file() or (path.is_dir() and not path.is_symlink())):
            raise EncoderError(
                f"encoder '{encoder}' has something else than files and folders in its folder",
                where=str(path.relative_to(folder)),
                expected="a file or a folder",
                got="a link to a folder" if path.is_dir() else "a pipe, a device or a broken link",
                remedy="copy the model again, with the files in the place of the links (cp -rL)",
            )


def everything(folder: Path) -> Iterator[Path]:
    """Every file and folder below a folder. Raises EncoderError if a folder cannot be listed: rglob would skip it."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise EncoderError(
                "a folder of a model cannot be listed", where=str(error.filename), got=first_line(error),
                remedy="make the folder readable (chmod u+rX)",
            ) from None  # fmt: skip

    for parent, folders, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent) / name for name in [*folders, *names])


def _refuse_modules(encoder: str, folder: Path) -> None:
    """Raise EncoderError if modules.json names code of the folder, or a place outside of the folder."""
    if has_space(encoder, folder):
        _refuse_code(encoder, folder)
    modules = _read_modules(encoder, folder)
    names = [str(module["name"]) for module in modules if "name" in module]
    if len(set(names)) < len(names):  # the library would keep the last one of a name
        raise EncoderError(
            f"encoder '{encoder}' has two modules of one name",
            where="modules.json",
            expected="another name for each module",
            got=Counter(names).most_common(1)[0][0][:200],
            remedy="save the model again with SentenceTransformer.save_pretrained",
        )
    for module in modules:
        path = module.get("path", "")
        if not isinstance(path, str) or Path(path).is_absolute() or ".." in Path(path).parts:
            raise EncoderError(
                f"encoder '{encoder}' has a module outside of its folder",
                where="modules.json",
                expected="paths inside of the folder",
                got=str(path)[:200],
                remedy="save the model again with SentenceTransformer.save_pretrained",
            )
        if module.get("type") == SPACE_MODULE:
            continue
        # sentence-transformers imports a local folder's own classes even without trust_remote_code, and any name that
        # a module of its own has.
        library, _, name = str(module.get("type")).rpartition(".")
        if not library.startswith("sentence_transformers.") or name not in MODULES:
            raise EncoderError(
                f"encoder '{encoder}' wants to run code from its folder, or a module that is not known to be safe",
                where="modules.json",
                expected=f"of sentence_transformers: {', '.join(sorted(MODULES))}",
                got=str(module.get("type"))[:200],
                remedy="use a model without custom code",
            )


def _refuse_pickles(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a library could read weights from a pickle.

    Beside model.safetensors no library reads a pickle. An index takes its place only for transformers: a module of
    sentence-transformers reads pytorch_model.bin beside an index. Other folders, as models of the hub have them for
    OpenVINO, are not read.
    """
    for part in _read_folders(encoder, folder):
        for path in (path for suffix in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in part.glob(suffix)):
            instead = ["model.safetensors"] + ["model.safetensors.index.json"] * (path.name != "pytorch_model.bin")
            if not any((path.parent / name).is_file() for name in instead):
                raise _pickle_error(encoder, str(path.relative_to(folder)), path.name)
    for path in folder.rglob("*.safetensors.index.json"):
        index = _read_json(encoder, folder, path)
        files = index.get("weight_map") if isinstance(index, dict) else None
        for name in files.values() if isinstance(files, dict) else [files]:
            if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
                raise _pickle_error(encoder, str(path.relative_to(folder)), str(name)[:200])


def _read_folders(encoder: str, folder: Path) -> list[Path]:
    """The folders that libraries read weights and models from: the model's own, and those of modules.json."""
    modules = _read_modules(encoder, folder) if (folder / "modules.json").exists() else []
    return list(dict.fromkeys([folder, *(folder / str(module.get("path", "")) for module in modules)]))


def _pickle_error(encoder: str, where: str, got: str) -> EncoderError:
    return EncoderError(
        f"encoder '{encoder}' has its weights in a pickle",
        where=where,
        expected="model.safetensors, or files *.safetensors of this folder in an index",
        got=got,
        remedy="convert the weights with safetensors.torch.save_model, or use a revision that has safetensors",
    )


def _refuse_arguments(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a configuration of sentence-transformers passes on an argument that can run code.

    Refused too: a tokenizer of another place, which has no pin; chat templates (`message`) and `processing_kwargs`,
    which change a text before its tokens are counted.
    """
    for path in folder.rglob("sentence_*_config.json"):
        config = _read_json(encoder, folder, path)
        for key, value in config.items() if isinstance(config, dict) else [("", config)]:
            if ARGUMENTS.fullmatch(key):
                given = value if isinstance(value, dict) else {key: value}
                refused = [name for name in given if name not in SAFE_ARGUMENTS | {"attn_implementation"}]
                if str(given.get("attn_implementation") or "sdpa") not in SAFE_ATTENTIONS:
                    refused.append(f"attn_implementation: {given['attn_implementation']}")
            elif key == "modality_config":
                refused = ["message"] if "message" in json.dumps(value) else []
            else:
                refused = [] if key in SAFE_KEYS or (key == "processing_kwargs" and not value) else [key]
            if refused:
                raise EncoderError(
                    f"encoder '{encoder}' gives the library an argument that is not known to be safe",
                    where=f"{path.relative_to(folder)}, {key}",
                    expected=f"{', '.join(sorted(SAFE_KEYS))}; arguments of {', '.join(sorted(SAFE_ARGUMENTS))}; "
                    "attn_implementation: eager or sdpa",
                    got=refused[0][:200],
                    remedy="take the argument out, and pin the changed file",
                )


def _refuse_tokenizers(encoder: str, folder: Path) -> None:
    """Raise EncoderError for a tokenizer that reads files of other names, or whose replacements blow up a text.

    Refused too: the weights of an adapter, which can name a model of another place.
    """
    for path in everything(folder):
        refused, config = "", {}
        if path.name == "adapter_config.json":
            refused = "an adapter"
        elif path.name.startswith("tokenizer") and path.suffix == ".json":
            config = _read_json(encoder, folder, path)
        if path.name == "tokenizer_config.json" and isinstance(config, dict):
            refused = "init_inputs" if config.get("init_inputs") else ""
            for key, value in config.items():
                # fast_tokenizer_files lists the tokenizers of a folder for versions of transformers.
                own = key == "fast_tokenizer_files" and isinstance(value, list)
                if own and all(isinstance(name, str) and OWN_TOKENIZER.fullmatch(name) for name in value):
                    continue
                refused = key if isinstance(value, str | list | dict) and TOKENIZER_FILES.fullmatch(key) else refused
        elif isinstance(config, dict):
            growth = growth_of([config.get(part) for part in ("normalizer", "pre_tokenizer", "post_processor")])
            refused = refused or f"a text of {growth:.0f} times the length" * (growth > MOST_GROWTH)
        if refused:
            raise EncoderError(
                f"encoder '{encoder}' has a tokenizer or an adapter that is not known to be safe",
                where=str(path.relative_to(folder)),
                expected=f"no file of another name, no adapter, and a text of at most {MOST_GROWTH} times the length",
                got=refused[:200],
                remedy="save the model again with SentenceTransformer.save_pretrained",
            )


def growth_of(parts: Any) -> float:
    """How many times longer a text can become by the parts of a tokenizer, as its JSON has them."""
    return math.prod(_growth(step) for _, step in _entries(parts) if isinstance(step, dict))


def _growth(step: dict[str, Any]) -> float:
    """How many times longer a text can become by one step of a tokenizer."""
    if isinstance(charsmap := step.get("precompiled_charsmap"), str):
        try:
            raw = base64.b64decode(charsmap)
        except ValueError:
            return math.inf
        # A trie, whose length is first, and then the texts that it puts in the place of characters.
        return float(max(1, *map(len, raw[4 + int.from_bytes(raw[:4], "little") :].split(b"\0"))))
    if isinstance(pieces := step.get("single"), list):  # a template can have the text more than once
        return float(max(1, sum("Sequence" in piece for piece in pieces if isinstance(piece, dict))))
    if isinstance(put := step.get("prepend"), str):
        return 1.0 + len(put)
    pattern = step.get("pattern")
    # An empty text and many expressions are found between all characters.
    between = not (isinstance(pattern, dict) and pattern.get("String"))
    return float(max(1, len(str(step["content"])) + between)) if "content" in step else 1.0


def _refuse_kernels(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a config.json asks for an implementation of the hub, which is code."""
    for path in folder.rglob("config.json"):
        for key, value in _entries(_read_json(encoder, folder, path)):
            if (
                re.fullmatch("_?(attn|experts)_implementation", key)
                and value is not None
                and value not in sorted(SAFE_ATTENTIONS)
            ):
                raise EncoderError(
                    f"encoder '{encoder}' wants to run code of another place",
                    where=f"{path.relative_to(folder)}, {key}",
                    expected="eager or sdpa",
                    got=str(value)[:200],
                    remedy="take the key out, and pin the changed file",
                )


def _refuse_huge_numbers(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a configuration asks for many more layers, or for larger ones, than the weights are.

    The libraries make all layers before they read the weights: some bytes of JSON would take hours, or gigabytes.
    """
    most = max(MOST_LAYERS, sum(_count_tensors(path) for path in folder.rglob("*.safetensors")))
    for path in folder.rglob("*config*.json"):
        sizes: Counter[str] = Counter()
        for key, number in _entries(_read_json(encoder, folder, path)):
            if not isinstance(number, int):
                continue
            # The libraries know word_embedding_dimension, the older name, too.
            sizes[key.replace("word_embedding", "embedding")] += max(number, 1)
            if any(part in key.lower() for part in LAYERS):
                where, total = f"{path.relative_to(folder)}, {key}", sizes[key.replace("word_embedding", "embedding")]
                if abs(number) > most:
                    raise _number_error(encoder, where, f"at most {most}", number)
                if total > 4 * most:  # of a list: the layers of all its blocks
                    raise _number_error(encoder, where, f"at most {4 * most} in all", total)
        weights = _weight_bytes(path.parent)
        for keys in SIZES.get(path.name, ()):
            asked = math.prod(sizes.get(key, 1) for key in keys)
            if keys[0] in sizes and asked > weights:
                where = f"{path.relative_to(folder)}, {' x '.join(keys)}"
                raise _number_error(encoder, where, f"at most the {weights} bytes of the weights", asked)


def _weight_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def _refuse_huge_models(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a transformer has many more numbers than its weights, or if no model can be made of it.

    A model on torch's device `meta` has sizes, and no memory. Without the library nothing can be loaded either.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModel
    except ModuleNotFoundError:
        return
    for path in (part / "config.json" for part in _read_folders(encoder, folder)):
        config = _read_json(encoder, folder, path) if path.is_file() else {}
        if not isinstance(config, dict) or "model_type" not in config:
            continue  # of another module; transformers refuses a config.json without a model_type
        try:
            settings = AutoConfig.from_pretrained(path.parent, local_files_only=True, trust_remote_code=False)
            with torch.device("meta"):
                model = AutoModel.from_config(settings, trust_remote_code=False)  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001  # a damaged configuration makes transformers raise anything
            raise EncoderError(
                f"encoder '{encoder}' cannot be loaded",
                where=str(path.relative_to(folder)),
                expected="the configuration of a model that transformers knows",
                got=f"{type(error).__name__}: {first_line(error)}",
                remedy="save the model again with SentenceTransformer.save_pretrained",
            ) from None
        asked = sum(value.numel() for value in [*model.parameters(), *model.buffers()])
        most = 2 * _weight_bytes(path.parent) + MOST_OTHER_NUMBERS
        if asked > most:
            raise _number_error(encoder, str(path.relative_to(folder)), f"at most {most} numbers", asked)


def default_prompt(encoder: str, folder: Path) -> str:
    """The text that sentence-transformers puts before all texts; mostly empty.

    Raises EncoderError if the prompts are no texts, or if the model is of another kind than SentenceTransformer.
    """
    path = folder / "config_sentence_transformers.json"
    config = _read_json(encoder, folder, path) if path.is_file() else {}
    config = config if isinstance(config, dict) else {"model_type": config}
    prompts, name = config.get("prompts", {}), config.get("default_prompt_name")
    texts = isinstance(prompts, dict) and all(isinstance(text, str | None) for text in prompts.values())
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer" or not texts or not isinstance(name, str | None):
        raise EncoderError(
            f"encoder '{encoder}' is no sentence transformer",
            where=path.name,
            expected="model_type: SentenceTransformer, and prompts that are texts",
            got=str(kind if kind != "SentenceTransformer" else [prompts, name])[:200],
            remedy="save the model again with SentenceTransformer.save_pretrained",
        )
    return prompts.get(name) or ""


def refuse_prompt(encoder: str, folder: Path) -> None:
    """Raise EncoderError if sentence-transformers would put a prompt before all texts.

    For a transformer that is read without sentence-transformers' own text handling.
    """
    if prompt := default_prompt(encoder, folder):
        raise EncoderError(
            f"encoder '{encoder}' puts a prompt before all texts",
            where="config_sentence_transformers.json, default_prompt_name",
            expected="no default prompt",
            got=prompt[:200],
            remedy="set default_prompt_name to null, and write the prompt into the texts",
        )


def refuse_lower_case(encoder: str, folder: Path) -> None:
    """Raise EncoderError if sentence-transformers would make texts lower case before the tokenizer.

    For a transformer that is read without sentence-transformers' own text handling.
    """
    for path in folder.glob("sentence_*_config.json"):
        config = _read_json(encoder, folder, path)
        if isinstance(config, dict) and config.get("do_lower_case"):
            raise EncoderError(
                f"encoder '{encoder}' makes texts lower case outside of its tokenizer",
                where=f"{path.name}, do_lower_case",
                expected="false",
                got=str(config["do_lower_case"])[:200],
                remedy="let the tokenizer make texts lower case, and set do_lower_case to false",
            )


def _number_error(encoder: str, where: str, expected: str, got: int) -> EncoderError:
    return EncoderError(
        f"encoder '{encoder}' asks for more than its weights are",
        where=where,
        expected=expected,
        got=str(got)[:200],
        remedy="save the model again with SentenceTransformer.save_pretrained",
    )


def _entries(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every value in a JSON value, lists and objects too, with the nearest key above."""
    waiting = [("", tree)]
    while waiting:
        key, value = waiting.pop()
        yield key, value
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, item) for item in value]


def _count_tensors(path: Path) -> int:
    """The number of tensors in a safetensors file by its header; 0 if the header is damaged."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(length)) if length <= LONGEST_HEADER else {}
        except (ValueError, RecursionError):
            return 0  # the library refuses the file
    return len(header) if isinstance(header, dict) else 0


def has_space(encoder: str, folder: Path) -> bool:
    """Whether `sentfold export` wrote the folder with a map that is not linear. Raises EncoderError."""
    return any(module.get("type") == SPACE_MODULE for module in _read_modules(encoder, folder))


def _refuse_code(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a folder with a space has or names code."""
    named = [
        path for path in folder.rglob("*.json") if "auto_map" in path.read_text(encoding="utf-8", errors="replace")
    ]
    for path in [*folder.rglob("*.py"), *named]:
        raise EncoderError(
            f"encoder '{encoder}' wants to run code from its folder",
            where=str(path.relative_to(folder)),
            expected="no file *.py, and no auto_map",
            remedy="export the model again with `sentfold export`",
        )


def _read_modules(encoder: str, folder: Path) -> list[dict[str, Any]]:
    modules = _read_json(encoder, folder, folder / "modules.json", what="has no list of modules")
    if (
        not isinstance(modules, list)
        or not 0 < len(modules) <= MOST_MODULES
        or not all(isinstance(module, dict) for module in modules)
    ):
        raise EncoderError(
            f"encoder '{encoder}' has no list of modules",
            where="modules.json",
            expected=f"a JSON list of 1 to {MOST_MODULES} modules, as sentence-transformers saves it",
            got=str(modules)[:200],
            remedy="save the model again with SentenceTransformer.save_pretrained",
        )
    return modules


def _read_json(encoder: str, folder: Path, path: Path, *, what: str = "has a file that is not JSON") -> Any:
    """The value in a JSON file of the folder. Raises EncoderError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: brackets nested too deeply
        raise EncoderError(
            f"encoder '{encoder}' {what}",
            where=str(path.relative_to(folder)),
            expected="JSON, as sentence-transformers saves it",
            got=first_line(error),
            remedy="save the model again with SentenceTransformer.save_pretrained",
        ) from None
