"""Resolves the tools' folder flags, which are relative to -output."""

from __future__ import annotations

import argparse

_ATTRIBUTES = {
    "embeddingDFDir": "embedding_df_dir",
    "imageCaptionDFDir": "image_caption_df_dir",
    "vocabDir": "vocab_dir",
}


def beneath(flags: argparse.Namespace, flag: str) -> str:
    """The folder or URI that a flag names, relative to -output."""
    return f"{flags.output_path.rstrip('/')}/{getattr(flags, _ATTRIBUTES[flag]).strip('/')}"
