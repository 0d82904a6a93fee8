"""Find the commit that pins an encoder on the hub."""

from __future__ import annotations

import os

from pipeline.encoders.embed import EncoderParameters
from pipeline.errors import EncoderError, first_line
from pipeline.params import load_parameters


def newest_revision(encoder: str) -> str:
    """The 40-digit commit that the hub's main branch points at now. Raises EncoderError."""
    place = load_parameters(EncoderParameters, f"encoders.{encoder}")
    if place.hub is None:
        raise EncoderError(
            f"encoder '{encoder}' does not come from the hub",
            where=f"params.yaml: encoders.{encoder}",
            remedy="its sha256 pins it",
        )
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        commit = HfApi(endpoint=os.environ.get("HF_ENDPOINT")).model_info(place.hub, timeout=30).sha
    except (HfHubHTTPError, HFValidationError, HTTPError, OSError) as error:
        raise EncoderError(
            f"the hub does not answer for encoder '{encoder}'",
            where=place.hub,
            got=first_line(error),
            remedy="check the network and the model id",
        ) from None
    return str(commit)
