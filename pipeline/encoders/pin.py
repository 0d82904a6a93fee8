"""Find what pins an encoder: its commit on the hub, or the sha256 of its files."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.encoders.embed import EncoderParameters, _package_folder, model_digests
from pipeline.errors import EncoderError, first_line
from pipeline.params import load_parameters


def pin_lines(encoder: str) -> str:
    """The lines that pin an encoder as it is now, for its block in params.yaml. Raises EncoderError."""
    place = load_parameters(EncoderParameters, f"encoders.{encoder}")
    if place.hub is not None:
        return f"    revision: {newest_revision(encoder, place.hub)}"
    folder = _package_folder(encoder, place.package) if place.package else Path(place.folder or "")
    if not (folder / "modules.json").exists():
        raise EncoderError(
            f"encoder '{encoder}' has no model folder",
            where=str(place.folder or place.package),
            expected="a folder with modules.json, as sentence-transformers saves it",
            remedy=f"correct params.yaml: encoders.{encoder}",
        )
    digests = model_digests(folder)
    return "\n".join(["    sha256:", *(f"      {name}: {digest}" for name, digest in digests.items())])


def newest_revision(encoder: str, model_id: str) -> str:
    """The 40-digit commit that the hub's main branch points at now. Raises EncoderError."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        commit = HfApi(endpoint=os.environ.get("HF_ENDPOINT")).model_info(model_id, timeout=30).sha
    except (HfHubHTTPError, HFValidationError, HTTPError, OSError) as error:
        raise EncoderError(
            f"the hub does not answer for encoder '{encoder}'",
            where=model_id,
            got=first_line(error),
            remedy="check the network and the model id",
        ) from None
    return str(commit)
