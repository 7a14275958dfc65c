#!/usr/bin/env python3
"""Counts hard sentences in the comments below a folder. `words.sh` calls it, and says how it counts.

    benches/own/words.py [-v] FOLDER
"""
import collections, pathlib, re, sys

HARD = re.compile(r"\b(?:what|told|tells|came|beside|that\s+of)\b", re.IGNORECASE)
SENTENCE = re.compile(r".+?(?:[.:;][\"')\]*_]*(?=\s|$)|$)", re.DOTALL)
# A name in backquotes is replaced by this, so that the sentence keeps its words apart.
NAME = "\x00"
# Whatever may hold `//` and is not a comment: raw strings, strings, characters. Lifetimes match none of them.
RUST = re.compile(
    r"""(?P<comment>//[^\n]*)
    |/\*.*?\*/
    |\b(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    |"(?:\\.|[^"\\])*"
    |'(?:\\[^\n]+?|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
SHELL = re.compile(r"(?:^|(?<=\s))(?P<comment>\#(?!!)[^\n]*)", re.MULTILINE)


def comments(text, pattern):
    """Each comment as its line, its marker, its words, and whether nothing else stands on its line."""
    for match in pattern.finditer(text):
        comment = match["comment"]
        if comment is None:
            continue
        marker = re.match(r"//[/!]?|#", comment)[0]
        start = text.rfind("\n", 0, match.start()) + 1
        line = text.count("\n", 0, match.start()) + 1
        yield line, marker, comment[len(marker):].strip(), not text[start:match.start()].strip()


def blocks(text, pattern):
    """Consecutive lines of one kind of comment, each block a list of (line, words)."""
    block, last, fenced = [], None, False
    for line, marker, words, whole in comments(text, pattern):
        adjacent = whole and last == (line - 1, marker)
        fenced = fenced and adjacent
        fence = words.startswith("```")
        if block and (not adjacent or not words or fence):
            yield block
            block = []
        if words and not fence and not fenced:
            block.append((line, words))
        fenced ^= fence
        last = (line, marker) if whole else None
    if block:
        yield block


def hard_sentences(block):
    """The sentences of a block that hold two of the words or more, each with the line on which it begins."""
    text, starts = "", []
    for line, words in block:
        starts.append((len(text), line))
        text += words + "\n"
    named = re.sub(r"`[^`]*`", lambda name: NAME * len(name[0]), text)
    for match in SENTENCE.finditer(named):
        if len(HARD.findall(match[0])) >= 2:
            begin = match.start() + len(match[0]) - len(match[0].lstrip())
            line = max(line for start, line in starts if start <= begin)
            yield line, " ".join(text[begin:match.end()].split())


def files(folder):
    """The files to read, each with its group, its path and how comments look in it."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if parts[0] in ("target", ".git") or path.is_symlink() or not path.is_file():
            continue
        group = parts[1] if parts[0] == "crates" else "scripts"
        if path.suffix == ".rs" and parts[0] == "crates":
            yield group, path, RUST
        elif path.suffix == ".sh":
            yield group, path, SHELL


def main(arguments):
    verbose, folder = arguments[:-1] == ["-v"], pathlib.Path(arguments[-1])
    counts = collections.Counter()
    for group, path, pattern in files(folder):
        text = path.read_text()
        counts[group] += 0
        for block in blocks(text, pattern):
            for line, sentence in hard_sentences(block):
                counts[group] += 1
                if verbose:
                    print(f"{path.relative_to(folder)}:{line}: {sentence}")
    for group, count in sorted(counts.items()):
        print(f"{count:6} {group}")
    print(f"{counts.total():6} total")


main(sys.argv[1:])
