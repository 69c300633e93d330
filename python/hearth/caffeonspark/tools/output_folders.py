"""Folders of flags below -output."""

from __future__ import annotations

import argparse

_ATTRIBUTES = {
    "embeddingDFDir": "embedding_df_dir",
    "imageCaptionDFDir": "image_caption_df_dir",
    "vocabDir": "vocab_dir",
}


def beneath(flags: argparse.Namespace, flag: str) -> str:
    """The folder or URI of a flag, relative to -output."""
    return f"{flags.output_path.rstrip('/')}/{getattr(flags, _ATTRIBUTES[flag]).strip('/')}"
