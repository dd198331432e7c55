"""What is made from the option tables: docs/configuration.md is up to date, manual pages and completions are
what their readers take."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def told(weir_bin, tmp_path_factory):
    out = tmp_path_factory.mktemp("told")
    subprocess.run([sys.executable, ROOT / "tools/docs.py", "--weir", weir_bin, "--out", out], check=True)
    return out


def test_configuration_page(told):
    committed = (ROOT / "docs/configuration.md").read_text()
    assert committed == (told / "configuration.md").read_text(), "run ./dev docs and commit the result"


@pytest.mark.parametrize("page", ["weir.1", "weir-pipeline.5"])
def test_manual_page(told, page):
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", told / "man" / page], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("shell", "file"), [("bash", "weir.bash"), ("zsh", "_weir"), ("fish", "weir.fish")])
def test_completion_is_read(told, shell, file):
    done = subprocess.run([shell, "-n", told / "completions" / file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def bash_completes(told, weir_bin, folder, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    script = f'. "$1"; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _weir; printf "%s\\n" "${{COMPREPLY[@]}}"'
    env = {**os.environ, "PATH": f"{weir_bin.parent}:{os.environ['PATH']}"}
    command = ["bash", "-c", script, "bash", told / "completions/weir.bash"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes(told, weir_bin, tmp_path):
    (tmp_path / "orders.yaml").write_text("")
    (tmp_path / "other.txt").write_text("")

    def offered(*words):
        return bash_completes(told, weir_bin, tmp_path, "weir", *words)

    assert {"run", "check", "init"} <= offered("")
    assert offered("ru") == {"run"}
    assert offered("run", "--new") == {"--new-deployment"}
    assert offered("check", "--new") == set()
    assert offered("run", "") == {"orders.yaml"}
    assert offered("run", "--log-level", "w") == {"warn"}
    assert "numbers" in offered("init", "")
    assert {"generator", "blackhole"} <= offered("connectors", "")
