"""`moe-theory new`."""

import importlib.util
import keyword
import re
from importlib import resources
from pathlib import Path

import click

from moe_theory.cli.options import examples, json_option, out_option
from moe_theory.cli.output import show_document
from moe_theory.core.errors import DeclarationError, OutputError, shortened

TEMPLATE = "allocations"  # name of the paper in the folder `template`
MODULE = f"{TEMPLATE}/__init__.py"  # the paper's folder also has its proofs and its record
RESERVED = ("all", "overview", "quick")  # words with another meaning in commands


@click.command(epilog=examples("moe-theory new paper queues"))
@click.argument("kind", type=click.Choice(["paper"]), metavar="paper")
@click.argument("name")
@out_option("Folder for the files.", default_words="NAME")
@json_option("a list of the written paths.")
def new(kind: str, name: str, out: Path | None) -> None:
    """Create a template package for your own paper.

    Writes into OUT a pyproject.toml, the paper (NAME/__init__.py, with a system, readings, a statement with two claims,
    and a figure), the statement's texts (NAME/statements.toml), a sweep (sweep.toml) and a test. Nothing is
    overwritten.
    """
    from moe_theory.plot.document import of_paths
    from moe_theory.plot.markdown import filled
    from moe_theory.runs.files import prepare_folder, write_whole

    require_free(name)
    folder = out or Path(name)
    texts = template(name)
    paths = [folder / file for file in texts]
    for path in paths:
        if path.exists():
            raise OutputError(f"{path} already exists, and is not overwritten. Name another --out.")
    paths = [prepare_folder(path.parent) / path.name for path in paths]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, text)
    text = filled(Path(__file__).with_name("new.md"), name=name, folder=folder, files=texts)
    show_document(of_paths(paths, text))


def template(name: str) -> dict[str, str]:
    folder = resources.files("moe_theory.cli").joinpath("template")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    texts[MODULE] = texts.pop(f"{TEMPLATE}.py")
    texts[f"{TEMPLATE}/statements.toml"] = texts.pop("statements.toml")
    return {path.replace(TEMPLATE, name): text.replace(TEMPLATE, name) for path, text in texts.items()}


def require_free(name: str) -> None:
    """Raise DeclarationError unless a paper may have this name and its module would hide no other."""
    import moe_theory
    from moe_theory.core.papers import paper_names

    if not re.fullmatch(r"[a-z][a-z0-9]{0,39}", name) or keyword.iskeyword(name):
        raise DeclarationError(
            f"name={shortened(name)} must be a lower-case letter and up to 39 lower-case letters or digits, because it "
            "names a module and begins the ids of claims. Choose another name."
        )
    specs = [importlib.util.find_spec(module) for module in (f"moe_theory.{name}", name)]
    is_taken = name in {*RESERVED, *paper_names(), *dir(moe_theory)}
    if is_taken or any(spec is not None and spec.origin for spec in specs):  # a mere folder has no origin
        raise DeclarationError(
            f"name={name} is already the name of a paper or module, or is reserved by moe_theory. Try my{name}."
        )
