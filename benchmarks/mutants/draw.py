"""Which files are mutated, which mutants are drawn, and where a mutant is found after its code has moved."""

import functools
import random
from pathlib import Path

from benchmarks.mutants.edits import Edit, Finder, Mutant

FOLDERS = "core verification runs sweep".split()
FORMULAS = "theory corrected algorithm system delays policies model rewards tree".split()  # files of a paper


@functools.cache
def edits_of(tree: Path, file: str) -> list[Edit]:
    """Return all edits of a file."""
    return Finder(file, (tree / file).read_text()).edits


def papers(tree: Path) -> list[str]:
    """Return the folders that have a paper's formulas."""
    return sorted(path.parent.name for path in tree.glob("moe_theory/*/theory.py"))


def modules(tree: Path) -> list[str]:
    """Return the files that are mutated."""
    paths = [path for folder in FOLDERS for path in tree.glob(f"moe_theory/{folder}/*.py")]
    paths += [tree / "moe_theory" / paper / f"{name}.py" for paper in papers(tree) for name in FORMULAS]
    return sorted(str(path.relative_to(tree)) for path in paths if path.is_file())


def draw(tree: Path, number: int, seed: int) -> list[Mutant]:
    """Draw mutants over files by their lines of code, and in a file over functions and kinds of edits."""
    generator = random.Random(seed)
    mutants_of = {file: [edit.mutant for edit in edits_of(tree, file)] for file in modules(tree)}
    sizes = {file: len({mutant.line for mutant in mutants}) for file, mutants in mutants_of.items()}
    drawn = []
    for file, mutants in mutants_of.items():
        groups: dict[tuple[str, str], list[Mutant]] = {}
        for mutant in mutants:
            groups.setdefault((mutant.kind, mutant.function), []).append(mutant)
        share = max(1, round(number * sizes[file] / sum(sizes.values())))
        for group in generator.sample(sorted(groups), min(len(groups), share)):
            drawn.append(generator.choice(groups[group]))
    generator.shuffle(drawn)
    return drawn[:number]


def located(tree: Path, mutant: Mutant) -> Edit | None:
    """Return the edit of a mutant: in its old file, else where the same function holds the same statement now."""
    old = Path(mutant.file)
    name = mutant.function.split(".")[-1]
    paths = [path for path in tree.glob("moe_theory/**/*.py") if name in path.read_text()]
    files = sorted(str(path.relative_to(tree)) for path in paths)
    files.sort(key=lambda file: (file != mutant.file, Path(file).name != old.name))
    for file in files:
        for edit in edits_of(tree, file):
            if edit.mutant.words == mutant.words:
                return edit
    return None
