#!/usr/bin/env python3
"""Prints the licences of everything that is linked into linerate, besides its own.

usage: notices.py TARGET [NAME=FILE ...]

The crates are read from `cargo metadata`; each FILE is the licence of another part, as text or HTML.
"""

import html
import json
import pathlib
import re
import subprocess
import sys

FILES = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
RULE = "=" * 78


def crates(target):
    """The packages that the program is compiled from, without those of the workspace."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", target]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "linerate"]
    seen = set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            # A kind of null is a dependency of the program; others are of builds and tests.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    inside = set(found["workspace_members"])
    return sorted((packages[package] for package in seen - inside), key=lambda p: (p["name"], p["version"]))


def texts(package):
    """The texts of a crate's licences."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and FILES.match(path.name))
    return [path.read_text(errors="replace").strip() for path in files]


def plain(path):
    """The text of a file, without the marks of HTML."""
    text = pathlib.Path(path).read_text(errors="replace")
    if path.endswith(".html"):
        text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?s)<style.*?</style>", "", text)))
        text = re.sub(r"\n\s*\n\s*\n+", "\n\n", text)
    return text.strip()


def main():
    target, *others = sys.argv[1:]
    linked = crates(target)
    print("linerate is linked with the parts below. Their licences follow, each text once.\n")
    # Texts that differ in line breaks alone are one.
    users, first = {}, {}
    for package in linked:
        name = f"{package['name']} {package['version']}"
        print(f"{name:36}{package['license']}")
        for text in texts(package):
            key = " ".join(text.split())
            users.setdefault(key, []).append(name)
            first.setdefault(key, text)
    for key, text in first.items():
        print(f"\n{RULE}\n{', '.join(users[key])}\n{RULE}\n\n{text}")
    for name, path in (other.split("=", 1) for other in others):
        print(f"\n{RULE}\n{name}\n{RULE}\n\n{plain(path)}")


main()
