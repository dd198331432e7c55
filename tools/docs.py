#!/usr/bin/env python3
"""Makes what is told from the tables that the program itself checks with: the reference of the pipeline file
(docs/configuration.md), the manual pages weir(1) and weir-pipeline(5), and completions for bash, zsh and fish.

  tools/docs.py [--weir PATH] [--out FOLDER]      ./dev docs calls it; without --out docs/configuration.md is
                                                  rewritten and the rest goes to build/docs
"""

import argparse
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATE = "2026-12-02"  # of the version, for the manual pages
TYPES = """\
| type | how a value is written |
|---|---|
| text, path | as it is; a relative path starts at the pipeline file's own folder |
| int, float, bool | `10`, `0.5`, `true` |
| size | `4096`, `64KiB`, `64MiB`, `1GB` |
| duration | `250ms`, `10s`, `1h` |
| list, paths | `[a, b]`; one value counts as a list of one |
| map | `{key: value}` |

`${NAME}` takes an environment variable; for a secret, `file:/path` takes the content of a file. A key given
twice is an error, and so is one that is not known. Inside `{}` a type with a comma, colon or bracket is quoted:
`"decimal128(38, 10)"`.
"""


class Tables:
    def __init__(self, weir):
        self.help = self.ask(weir, "help")
        self.connectors = self.ask(weir, "connectors")
        self.version = self.ask(weir, "version")["version"]

    @staticmethod
    def ask(weir, *arguments):
        done = subprocess.run([weir, *arguments, "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def groups(self):
        """(title, options) of each table of the pipeline file, in the order in which it is read."""
        yield "The pipeline", "", self.connectors["pipeline"]
        for kind in ("source", "sink"):
            of_kind = [connector for connector in self.connectors["connectors"] if connector["kind"] == kind]
            yield f"Every {kind}", f"Under `{kind}s: NAME:`.", of_kind[0]["common"]
            for connector in of_kind:
                yield f"{kind.capitalize()} `{connector['name']}`", connector["text"], connector["options"]


def sqlite_types():
    """The table of types, read off the one that the sink goes by."""
    source = (ROOT / "connectors/sqlite/types.c").read_text()
    rows = re.findall(r'\{"([^"]+)", "([A-Z]+)", LITE_\w+,\s*LITE_\w+,\s*"([^"]*)"\}', source)
    lines = ["", "| Arrow | SQLite | |", "|---|---|---|"]
    return lines + [f"| {arrow} | {sqlite} | {note} |" for arrow, sqlite, note in rows]


def bound(option, value):
    units = {
        "size": [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
        "duration": [(3600 * 10**9, "h"), (10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")],
    }
    for factor, unit in units.get(option["type"], []):
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)


def facts(option):
    words = [option["type"]]
    if option.get("choices"):
        words.append("one of " + ", ".join(option["choices"]))
    if "max" in option and option["max"] < 2**63 - 1:
        words.append(f"{bound(option, option['min'])} to {bound(option, option['max'])}")
    elif option.get("min"):
        words.append(f"at least {bound(option, option['min'])}")
    return "; ".join(words + [word for word in ("required", "secret") if option.get(word)])


# ---- Markdown ----------------------------------------------------------------------------------


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def markdown_table(options):
    lines = ["| option | what it takes | default | meaning |", "|---|---|---|---|"]
    for option in options:
        default = "`" + (option["default"] or '""') + "`" if "default" in option else ""
        cells = (f"`{option['name']}`", facts(option), default, option.get("text", ""))
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def configuration(tables):
    parts = [
        "# The pipeline file\n\nMade by `./dev docs` from the tables that check the file; "
        "`weir connectors NAME` prints the same, also of a plugin. A dotted name is a key of a mapping: "
        "`roll.size` is written `roll: {size: 64MiB}`.\n",
        TYPES,
    ]
    for title, text, options in tables.groups():
        parts.append(f"## {title}\n" + (f"\n{text}\n" if text else ""))
        parts.append(markdown_table(options) if options else "It has no options of its own.\n")
        if title == "Sink `sqlite`":
            parts.append("\n".join(sqlite_types()) + "\n")
    return "\n".join(parts)


# ---- manual pages (man(7) macros) ------------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\\&" + text if text[:1] in (".", "'") else text


def tagged(term, text):
    return f".TP\n.B {roff(term)}\n{roff(text)}\n"


def flag_term(flag):
    return " ".join(filter(None, (flag["name"], flag.get("value"))))


def manual_command(tables):
    h = tables.help
    parts = [f'.TH WEIR 1 {DATE} "weir {tables.version}" "User Commands"\n']
    parts.append(".SH NAME\nweir \\- deliver streams of Arrow record batches exactly once\n")
    parts.append(".SH SYNOPSIS\n.B weir\n.I COMMAND\n[\\fIFLAGS\\fR] [\\fIARGUMENT\\fR]\n.SH COMMANDS\n")
    for command in h["commands"]:
        parts.append(tagged(f"{command['name']} {command['operand']}".strip(), command["text"]))
        parts += [f".RS\n{tagged(flag_term(flag), flag['text'])}.RE\n" for flag in command["flags"]]
    parts.append(".SH OPTIONS\n" + "".join(tagged(flag_term(flag), flag["text"]) for flag in h["flags"]))
    parts.append(
        ".SH SIGNALS\nThe first SIGTERM or SIGINT asks for one last checkpoint and waits for it as long as\n"
        ".BR checkpoint.timeout ;\na second one stops at once, which is safe. SIGUSR1 asks for a checkpoint now.\n"
    )
    parts.append(".SH EXIT STATUS\n" + "".join(tagged(str(e["status"]), e["text"]) for e in h["exit"]))
    parts.append(".SH ENVIRONMENT\n" + tagged("WEIR_PLUGIN_PATH", "Folders, separated by colons, in which weir-NAME.so is looked for."))
    parts.append(".SH SEE ALSO\n.BR weir\\-pipeline (5)\n")
    return "".join(parts)


def manual_file(tables):
    parts = [f'.TH WEIR-PIPELINE 5 {DATE} "weir {tables.version}" "File Formats"\n']
    parts.append(".SH NAME\nweir\\-pipeline \\- the pipeline file of weir\n.SH DESCRIPTION\nA file in YAML.\n.BR \"weir init\"\nprints samples.\n")
    for title, text, options in tables.groups():
        parts.append(f".SH {roff(title.upper())}\n" + (f"{roff(text)}\n" if text else ""))
        for option in options:
            default = f" (default {option['default']})" if option.get("default") else ""
            parts.append(tagged(option["name"], f"{facts(option)}{default}. {option.get('text', '')}"))
    parts.append(".SH SEE ALSO\n.BR weir (1)\n")
    return "".join(parts)


# ---- completions -----------------------------------------------------------------------------


def bash(tables):
    h = tables.help
    names = " ".join(command["name"] for command in h["commands"])
    common = [flag["name"] for flag in h["flags"]]
    values = "".join(
        f'    {flag["name"]}) COMPREPLY=($(compgen -W "{flag["choices"].replace("|", " ")}" -- "$word")); return ;;\n'
        for flag in h["flags"]
        if "choices" in flag
    )
    own = "".join(
        f'    {command["name"]}) flags="$flags {" ".join(flag["name"] for flag in command["flags"])}" ;;\n'
        for command in h["commands"]
        if command["flags"]
    )
    return f"""\
# bash completion for weir
_weir() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= flags="{" ".join(common)}" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}
  done
  case $before in
{values}    --set) COMPREPLY=(); return ;;
  esac
  case $command in
{own}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    return
  fi
  case $command in
    "") COMPREPLY=($(compgen -W "{names}" -- "$word")) ;;
    help) COMPREPLY=($(compgen -W "{names}" -- "$word")) ;;
    init) COMPREPLY=($(compgen -W "$(weir init 2>/dev/null | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')" -- "$word")) ;;
    connectors | conform) COMPREPLY=($(compgen -W "$(weir connectors 2>/dev/null | sed -n 's/^  \\([^ ]*\\) .*/\\1/p')" -- "$word")) ;;
    version) COMPREPLY=() ;;
    *) COMPREPLY=($(compgen -f -X '!*.y*ml' -- "$word") $(compgen -d -- "$word")) ;;
  esac
}}
complete -o filenames -F _weir weir
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(tables):
    h = tables.help
    commands = "\n".join("    " + quoted(f"{c['name']}:{c['text'].replace(':', chr(92) + ':')}") for c in h["commands"])

    def spec(flag):
        text = flag["text"].replace("[", "(").replace("]", ")").replace(":", "\\:")
        value = f":value:({flag['choices'].replace('|', ' ')})" if "choices" in flag else ":value:" if "value" in flag else ""
        return quoted(f"{'*' if flag['name'] == '--set' else ''}{flag['name']}[{text}]{value}")

    flags = " \\\n    ".join(spec(flag) for flag in h["flags"])
    own = "".join(
        f"    {c['name']}) own=({' '.join(spec(flag) for flag in c['flags'])}) ;;\n" for c in h["commands"] if c["flags"]
    )
    return f"""\
#compdef weir
_weir() {{
  local -a commands own
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[2] in
{own}  esac
  _arguments $own {flags} '*:file:_files -g "*.y(a|)ml"'
}}
_weir "$@"
"""


def fish(tables):
    h = tables.help
    names = " ".join(command["name"] for command in h["commands"])
    lines = ["# fish completion for weir"]
    for c in h["commands"]:
        lines.append(
            f"complete -c weir -n 'not __fish_seen_subcommand_from {names}' -f -a {c['name']} -d {quoted(c['text'])}"
        )
        for flag in c["flags"]:
            lines.append(
                f"complete -c weir -n '__fish_seen_subcommand_from {c['name']}' -l {flag['name'][2:]} -d {quoted(flag['text'])}"
            )
    for flag in h["flags"]:
        takes = f" -x -a {quoted(flag['choices'].replace('|', ' '))}" if "choices" in flag else " -x" if "value" in flag else ""
        lines.append(f"complete -c weir -l {flag['name'][2:]}{takes} -d {quoted(flag['text'])}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default=ROOT / "build/release/weir")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    tables = Tables(given.weir)
    out = given.out or ROOT / "build/docs"
    pages = {
        (given.out or ROOT / "docs") / "configuration.md": configuration(tables),
        out / "man/weir.1": manual_command(tables),
        out / "man/weir-pipeline.5": manual_file(tables),
        out / "completions/weir.bash": bash(tables),
        out / "completions/_weir": zsh(tables),
        out / "completions/weir.fish": fish(tables),
    }
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
