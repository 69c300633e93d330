#!/usr/bin/env python3
"""Checks that comments, strings and test names use the project's terms: one name for each thing.

Prints one line per word to replace, and exits with 1 if there is any. Checks every tracked file
that it can read: C++, CUDA, Scala and Java, Python, Markdown, and comments of scripts and CMake.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from sizes import tracked  # noqa: E402

# (what not to write, what to write instead)
WORDS = [
    (r"(far|near) (files?|folders?|rows?|snapshots?|splits?|hosts?)|elsewhere", "remote, local"),
    (r"pictures?", "image"),
    (r"told|tells? of|hears?|heard|the word that|what is said", "reported, notified, message"),
    (r"rooms|room(?! (for|on|in|to))|houses?", "module"),
    (r"(?<!in )(?<!in-)(?<!out of )places?(?! (a|the)\b)", "position, offset, location, slot"),
    (r"strangers?|friends?|crowds?|doors?", "unauthenticated client, peer, listener"),
    (r"lent|lends?|borrow(s|ed)?", "forwarded (delegation) tokens"),
    (r"meeting places?|meetings?|attendance|rosters?", "rendezvous, step tracker, membership"),
    (r"pieces?", "split, row group, chunk, part"),
    (r"deals?(?! with)|dealt|dealing(?! with)", "distribute round-robin"),
    (r"kept (rows|batches)", "spooled rows, persisted batches"),
    (r"foretells?|foretold", "predicted, modelled"),
    (r"beside the trainers?", "in the same process tree, on the same host"),
    (r"g(ives?|iven|ave|iving) up", "abandoned, timed out, released"),
    (r"time (is|was) over", "before the deadline, deadline exceeded"),
    (r"an own|of (its|their|one's) own", "a separate, dedicated or private one"),
    (r"(bad|unusable) (rows?|records?)", "invalid rows"),
    (r"strikers?|soak draws?", "fault injector, randomized fault tests"),
    (r"whoever|nobody|somebody|everybody", "the caller, the reader, no rank, no other thread"),
    (r"(which|that) (is|are) none|is no number", "is not one, is missing, is not finite"),
    (r"anew", "again"),
]
WRONG = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), instead) for words, instead in WORDS]
# Openings that a file's first comment must not have: it names what the file is, does or contains.
SHEBANG = re.compile(r"^#!.*\n")
OPENING = re.compile(r'(?://|"""|#) ?(What|Which|How|Whoever|Where|Whatever)\b')

# Accepted text, by prefix of the path.
ALLOWED = {
    # Ranges of gradients, messages in flight and large values, not of files.
    "hearth/collective/": [r"\bpieces?\b", r"^place$"],
    "hearth/batch/chunks_image.h": [r"`piece`"],
    "hearth/ring/": [r"\bpiece\b"],
    "hearth/storage/": [r"\bpieces\b"],
    "python/bindings/": [r"\bpieces?\b"],
    "hearth/formats/mapped_file_test.cc": [r"elsewhere"],
    # Parts of pickles, of values in messages, and of a source's splits.
    "python/hearth/cluster/": [r"\bpieces?\b", r"\bplace\b"],
    "python/hearth/rows/": [r"\bpieces?\b", r"of its own shape"],
    "python/hearth/sources/": [r"\bpieces?\b"],
    "tests/python/test_results.py": [r"^\Wpiece\W$"],
    "tests/tensorflow/test_pickles.py": [r"^\Wpiece\W$"],
    # The module `place` and the class Place of hearth.ranks.
    "python/hearth/ranks/": [r"\bplace\b"],
    "python/hearth/tensorflow/": [r"\bplace\b"],
    "python/hearth/horovod/": [r"\bplace\b"],
    "tests/python/": [r"\bplace\b"],
    "bench/tf_step_worker.py": [r"\bplace\b"],
    "python/hearth/torch/checkpoints.py": [r"that are None"],
    # A folder with a blank in its name, for Spark's own setting.
    "tests/tables/catalogs.py": [r"ware house"],
    # The check and its test contain the words.
    "tools/check_words.py": [r".+"],
    "tests/project/test_words.py": [r".+"],
}

# Words that no identifier contains, but that have another sense in sentences.
NAME_WORDS = [(r"far(?! as\b)", "remote, large, or the side that is meant")]
WRONG_IN_NAMES = WRONG + [(re.compile(rf"\b(?:{w})\b", re.IGNORECASE), to) for w, to in NAME_WORDS]
# Identifiers that may stay, in words, by the beginning of a path.
ALLOWED_NAMES = {
    # Free space, C++'s keyword, nanobind's function, the verb "place" and the flag of the original.
    "": [r"\broom\b", r"^friend$", r"^borrow$", r"^place(?= \w)", r"^max bad records$"],
    "hearth/image/": [r"^place$"],
    "hearth/caffe/net/memory_plan.cc": [r"^place$"],
    # The pieces of pickles, results and splits, as above.
    "python/hearth/torch/returned.py": [r"^pieces$"],
    "bench/feed.py": [r"^pieces$"],
    "tests/": [r"^pieces?( bytes)?$"],
}

# Strings and comments in C++, C, Scala and Java; everything else is code.
TEXT = re.compile(
    r'R"(\w*)\((?P<raw>.*?)\)\1"'
    r'|"""(?P<triple>.*?)"""'
    r"|/\*(?P<block>.*?)\*/"
    r'|"(?P<string>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])'"
    r"|//(?P<comment>[^\n]*)",
    re.DOTALL,
)
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
# A comment of a shell script, a Makefile, CMake and YAML.
HASH = re.compile(r"(?:^|\s)#(?!!) ?(.*)")
# A value in an f-string.
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# Code in Markdown.
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
# Between two words of an identifier.
BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")


def in_cpp(source: str) -> Iterator[tuple[int, bool, str]]:
    """(line, whether it is a comment, text) of the strings and comments of C++."""
    for found in TEXT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if found["comment"] is not None:
            yield line, True, found["comment"].strip()
        else:
            text = found["raw"] or found["triple"] or found["block"] or found["string"] or ""
            if not text.endswith((".h", ".cc")):
                yield line, False, text


def in_python(source: str) -> Iterator[tuple[int, bool, str]]:
    """Like in_cpp(), for Python: comments, strings and the names of tests."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], True, token.string.lstrip("#").strip()
        elif tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            text = token.string
            if text.lower().startswith(("f", "rf", "fr")):
                text = PLACEHOLDER.sub("", text)
            yield token.start[0], False, text


def in_markdown(source: str) -> Iterator[tuple[int, bool, str]]:
    """Like in_cpp(), for Markdown: everything but code."""
    yield 1, False, CODE.sub(lambda found: "\n" * found[0].count("\n"), source)


def in_script(source: str) -> Iterator[tuple[int, bool, str]]:
    """Like in_cpp(), for files whose comments start with #: comments only."""
    for number, line in enumerate(source.splitlines(), 1):
        if found := HASH.search(line):
            yield number, True, found[1]


READERS = {
    **dict.fromkeys((".h", ".cc", ".c", ".cu", ".scala", ".java"), in_cpp),
    **dict.fromkeys((".sh", ".cmake", ".yml", "Makefile", "CMakeLists.txt"), in_script),
    ".py": in_python,
    ".md": in_markdown,
}


def texts(path: str, source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the texts to check. Consecutive comment lines are one text, so that phrases
    are found across line breaks."""
    read = next(reader for suffix, reader in READERS.items() if path.endswith(suffix))
    comment, first, last = "", 0, -1
    for line, is_comment, text in read(source):
        if not is_comment:
            yield line, text
        elif comment and line == last + 1:
            comment, last = f"{comment}\n{text}", line
        else:
            if comment:
                yield first, comment
            comment, first, last = text, line, line
    if comment:
        yield first, comment


def identifiers(path: str, source: str) -> Iterator[tuple[int, str]]:
    """(line, identifier) of a file's code, and the name of the file."""
    yield 1, Path(path).stem
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    elif READERS.get(Path(path).suffix) is in_cpp:
        code = TEXT.sub(lambda found: "\n" * found[0].count("\n"), source)
        for number, line in enumerate(code.splitlines(), 1):
            yield from ((number, name) for name in IDENTIFIER.findall(line))


@cache
def wrong_in_name(name: str, allowed: tuple[re.Pattern[str], ...]) -> list[tuple[str, str]]:
    """(word, what to write instead) of an identifier."""
    words = BOUNDARY.sub(" ", name).strip()
    for pattern in allowed:
        words = pattern.sub("", words)
    found = ((wrong.search(words), instead) for wrong, instead in WRONG_IN_NAMES)
    return [(word[0], instead) for word, instead in found if word]


def allowed_in(path: str, *tables: dict[str, list[str]]) -> tuple[re.Pattern[str], ...]:
    """The patterns of the tables that apply to a file."""
    return tuple(
        re.compile(text, re.IGNORECASE)
        for table in tables
        for at, some in table.items()
        if path.startswith(at)
        for text in some
    )


def problems_in(path: str, source: str) -> list[str]:
    """One line per word of a file to replace."""
    allowed = allowed_in(path, ALLOWED)
    lines = []
    if opening := OPENING.match(SHEBANG.sub("", source)):
        lines.append(f"{path}:1: begins with {opening[1]}: name what the file is, does or contains")
    for line, text in texts(path, source):
        for pattern in allowed:
            text = pattern.sub("", text)
        flat = text.replace("\n", " ")
        for wrong, instead in WRONG:
            lines += [
                f"{path}:{line + text.count(chr(10), 0, found.start())}: "
                f"{found[0]!r}: write {instead} instead"
                for found in wrong.finditer(flat)
            ]
    in_names = allowed_in(path, ALLOWED, ALLOWED_NAMES)
    for line, name in identifiers(path, source):
        for word, instead in wrong_in_name(name, in_names):
            lines.append(f"{path}:{line}: {word!r} in {name}: write {instead} instead")
    return lines


def problems(root: Path = ROOT) -> list[str]:
    """The findings of all tracked files that can be read."""
    return [
        line
        for f in tracked(*READERS)
        for line in problems_in(f, (root / f).read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) if found else "words: in order")
    sys.exit(bool(found))
