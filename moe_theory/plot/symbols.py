"""Mathematics in lines of text, written in ASCII or in LaTeX between dollars."""

import html
import re
import typing
from collections.abc import Callable
from typing import NamedTuple

if typing.TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markupsafe import Markup

_NAMES = (
    "alpha beta gamma delta epsilon eps zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Sigma Phi Psi Omega"
)
GREEK: dict[str, str] = dict(zip(_NAMES.split(), "αβγδεεζηθκλμνξπρστφχψωΓΔΘΛΣΦΨΩ", strict=True))
LETTER = "A-Za-zα-ωΓ-Ω"
BELOW = str.maketrans("0123456789+-−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
ABOVE = str.maketrans(
    "0123456789+-−=()abcdefghijklmnoprstuvwxyzTβγδθφχ′*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀᵝᵞᵟᶿᵠᵡ′*"
)
# Code and LaTeX formulas, which are between dollars, and options such as --set eta=1. They are not ASCII mathematics.
_CODE = re.compile(r"(`[^`]*`|\$[^$]+\$|--[a-z][^,;]*)")
_NAME = re.compile(rf"(?<![A-Za-z0-9.`])(?<![A-Za-z]{{2}}_)({'|'.join(GREEK)})(-bar)?(?![A-Za-z=])")
_SIGNS = (
    (r"<=", "≤"),
    (r">=", "≥"),
    (r"!=", "≠"),
    (r"->", "→"),
    (r"\+-", "±"),
    (r"(?<![\w.])1e(-?)\+?0*([1-9]\d*)\b", r"10^\1\2"),  # 1e-06
    (r"<(\w[^<>]*, [^<>]*\w)>", r"⟨\1⟩"),  # <x, y>
    (r"(?<=[\w)\]|'}]) - (?=[\w(\[|√])", " − "),  # a - b
    (r"(?<=\()-(?=[\wα-ω])", "−"),  # (-a
    (r"(?<![^\s\[/])-(?=\.?\d)", "−"),  # -1
    (r"(?<![\w.)\]}])\.(?=\d)", "0."),  # .5
    (r"(?<=\d) ?%", "\u00a0%"),  # 5 %
    (r"\b([Tt])([12])\b", r"\1_\2"),  # T1
)
_PAIR = r"\((?:[^()]|\([^()]*\))*\)"  # parentheses around text with at most one level of parentheses
_ROOT = re.compile(rf"\bsqrt({_PAIR})")
_SCRIPT = re.compile(  # a superscript after ^, or a letter and its subscript after _
    rf"(?:(?<=[\w)\]|'}}])\^|(?<![A-Za-z0-9_])(?P<base>[{LETTER}])_)"
    rf"(?P<script>\{{[^{{}}]*\}}|{_PAIR}|-?\d*\.?\d+|-?(?:th|[{LETTER}](?:_?\d)?(?![{LETTER}])))"
)
_ONE = re.compile(r"[−-]?(?:[\d.]+|[^\W\d_][\u0300-\u036f₀-ₜ]*|∞)")  # a number, or a letter with an index


class Scripts(NamedTuple):
    below: Callable[[str], str]
    above: Callable[[str], str]
    code: Callable[[str], str]


def _script_writer(sign: str, table: dict[int, int]) -> Callable[[str], str]:
    """Return a function that writes words with the letters of `table`, or after the sign if a letter is missing."""

    def script(words: str) -> str:
        if all(ord(letter) in table for letter in words):
            return words.translate(table)
        if _ONE.fullmatch(words) or re.fullmatch(r"\([^()]*\)", words):
            return f"{sign}{words}"
        return f"{sign}({words})"

    return script


def _plain_code(words: str) -> str:
    if words[0] == "$":
        return linear(words[1:-1])
    return words


def _marked_code(words: str) -> str:
    if words[0] == "`":
        return f"<code>{html.escape(words[1:-1])}</code>"
    return html.escape(_plain_code(words))


PLAIN = Scripts(_script_writer("_", BELOW), _script_writer("^", ABOVE), _plain_code)
TAGS = Scripts(lambda words: f"<sub>{words}</sub>", lambda words: f"<sup>{words}</sup>", _marked_code)


def plain(words: str) -> str:
    """Return a text with its ASCII mathematics in Unicode, such as "O(σ₀²)" for "O(sigma_0^2)"."""
    return _typeset(words, PLAIN)


def marked(words: str) -> "Markup":
    from markupsafe import Markup

    return Markup(_typeset(words, TAGS, html.escape))


def _typeset(words: str, scripts: Scripts, escape: Callable[[str], str] = str) -> str:
    pieces = []
    for place, part in enumerate(_CODE.split(words)):  # every second part is code
        piece = scripts.code(part) if place % 2 else _formulas(part, scripts, escape)
        pieces.append(piece)
    return "".join(pieces)


def _formulas(words: str, scripts: Scripts, escape: Callable[[str], str]) -> str:
    # A name that ends in -bar gets a bar above its letter.
    words = _NAME.sub(lambda match: GREEK[str(match[1])] + ("\u0304" if match[2] else ""), words)
    for pattern, sign in _SIGNS:
        words = re.sub(pattern, sign, words)
    words = _ROOT.sub(_root_sign, words)
    return _typeset_scripts(words, scripts, escape)


def _root_sign(match: re.Match[str]) -> str:
    inside = match[1][1:-1]
    if inside.isalnum():
        return f"√{inside}"
    return f"√{match[1]}"


def _typeset_scripts(words: str, scripts: Scripts, escape: Callable[[str], str]) -> str:
    parts = []
    end = 0
    for match in _SCRIPT.finditer(words):
        inner = match["script"]
        if inner[0] in "{(":
            inner = inner[1:-1]
        inner = re.sub(r"^([A-Za-z])(\d)$", r"\1_\2", inner)
        inner = _typeset_scripts(re.sub(r"^-|(?<=[\w)])-", "−", inner), scripts, escape)
        script = scripts.below if match["base"] else scripts.above
        parts += [escape(words[end : match.start()]), match["base"] or "", script(inner)]
        end = match.end()
    return "".join([*parts, escape(words[end:])])


def linear(latex: str) -> str:
    """Return a LaTeX formula in a line of Unicode, or unchanged if it is a table or unreadable."""
    from latex2mathml.converter import convert_to_element

    try:
        with_binomials = re.sub(r"\\binom\{(\w)\}\{(\w)\}", r"\\operatorname{binom}(\1, \2)", latex)
        element = convert_to_element(with_binomials)
    except Exception:  # the converter raises many errors
        return latex
    if element.find(".//mtable") is not None:
        return latex
    return re.sub(r"\s+(?=[)\],}])|(?<=[(\[{])\s+", "", " ".join(_line(element).split()))


_ACCENTS = {"~": "\u0303", "˜": "\u0303", "¯": "\u0304", "‾": "\u0304", "―": "\u0304", "^": "\u0302", "ˆ": "\u0302"}
_SPACED = set("=<>≤≥≠+−-±∈∉→∼≈≡×·⋅∧∨∪∩⊆∣≪≫⟹⟺⇒,;∝∀∃")


def _line(element: "Element") -> str:
    children: list[str] = []
    for child in element:
        words = _line(child)
        is_argument = child.tag == "mfrac" and children and re.fullmatch(r" \w{2,} ", children[-1])
        children.append(f"({words.strip()}) " if is_argument else words)
    text = html.unescape(element.text or "")
    match element.tag:
        case "mo":
            sign = {"-": "−"}.get(text, text)
            if sign in {",", ";"}:
                return f"{sign} "
            if sign in _SPACED:
                return f" {sign} "
            return sign
        case "mi":
            if len(text) == 1:
                return text
            return f" {text} "
        case "mspace":
            return " "
        case "mfrac":
            return f"{_held(children[0])}/{_held(children[1])} "
        case "msqrt":
            return f"√{_held(''.join(children))}"
        case "msub" | "munder":
            return children[0].rstrip() + PLAIN.below(_tight(children[1]))
        case "mover" if children[1].strip() in _ACCENTS:
            return children[0].rstrip() + _ACCENTS[children[1].strip()]
        case "msup" | "mover":
            return children[0].rstrip() + PLAIN.above(_tight(children[1]))
        case "msubsup" | "munderover":
            base, low, high = children
            return base.rstrip() + PLAIN.below(_tight(low)) + PLAIN.above(_tight(high)) + " "
    return text + "".join(children)


def _tight(words: str) -> str:
    """Return words without spaces around signs, as in an index."""
    return re.sub(r"\s*([^\w\s,])\s*", r"\1", words.strip())


def _held(words: str) -> str:
    """Return words in parentheses, unless they are one number or letter with its scripts."""
    words = words.strip()
    if re.fullmatch(r"(?:\d+|[^\W\d_])[\u0300-\u036f₀-ₜ⁰-ⁿ²³¹]*", words):
        return words
    return f"({words})"
