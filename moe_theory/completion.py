"""Scripts with which a shell completes commands and options, and files where an argument is neither."""

from collections.abc import Callable, Mapping, Sequence

from moe_theory.core.errors import unknown_name

PROGRAM = "moe-theory"
OPTIONS = {"--help": "the commands, exit codes and what --json prints", "--version": "the version"}
Flags = Mapping[str, Sequence[str]]  # options, with their dashes, by command: "verify", "sweep show"
Titles = Mapping[str, str]  # what a command does, in a sentence


def script(shell: str, flags: Flags, titles: Titles) -> str:
    """The script for bash, zsh or fish. Raises: UnknownNameError for another shell."""
    if shell not in _SCRIPTS:
        raise unknown_name("shell", shell, _SCRIPTS)
    return _SCRIPTS[shell](flags, titles)


def _bash(flags: Flags, titles: Titles) -> str:
    return f"""# bash completion for {PROGRAM}
_moe_theory() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  if (( COMP_CWORD == 1 )); then
    words="{" ".join([*_firsts(flags), *OPTIONS])}"
  else
    case "${{COMP_WORDS[*]:1:COMP_CWORD-1}} " in
{_cases(flags, 'words="{}"')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _moe_theory {PROGRAM}
"""


def _zsh(flags: Flags, titles: Titles) -> str:
    described = {name: titles[name] for name in _firsts(flags)} | OPTIONS
    return f"""#compdef {PROGRAM}
_moe_theory() {{
  local -a found
  if (( CURRENT == 2 )); then
    found=(
{chr(10).join(f"      {_quoted(f'{name}:{title}')}" for name, title in described.items())}
    )
    _describe command found
    return
  fi
  case "${{words[2,CURRENT-1]}} " in
{_cases(flags, "found=({})")}
  esac
  compadd -- $found
  _files
}}
if [[ $funcstack[1] == _moe_theory ]]; then
  _moe_theory "$@"
else
  compdef _moe_theory {PROGRAM}
fi
"""


def _fish(flags: Flags, titles: Titles) -> str:
    begin = f"complete -c {PROGRAM}"
    lines = [f"# fish completion for {PROGRAM}"]
    for name in _firsts(flags):
        lines.append(f"{begin} -n __fish_use_subcommand -f -a {name} -d {_quoted(titles[name])}")
    for option, about in OPTIONS.items():
        lines.append(f"{begin} -n __fish_use_subcommand -f -l {option[2:]} -d {_quoted(about)}")
    for name, options in flags.items():
        seen = _quoted("; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split()))
        lines += [f"{begin} -n {seen} {'-l' if flag[:2] == '--' else '-s'} {flag.lstrip('-')}" for flag in options]
        for second in _seconds(name, flags):
            lines.append(f"{begin} -n {seen} -a {second} -d {_quoted(titles[f'{name} {second}'])}")
    return "\n".join(lines) + "\n"


def _firsts(flags: Flags) -> list[str]:
    return [name for name in flags if " " not in name]


def _seconds(name: str, flags: Flags) -> list[str]:
    return [other.removeprefix(f"{name} ") for other in flags if other.startswith(f"{name} ")]


def _cases(flags: Flags, setting: str) -> str:
    """A shell's cases by the words so far, those of two words first."""
    return "\n".join(
        f'      "{name} "*) {setting.format(" ".join([*_seconds(name, flags), *flags[name]]))} ;;'
        for name in sorted(flags, reverse=True)
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", r"'\''") + "'"


_SCRIPTS: dict[str, Callable[[Flags, Titles], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
