"""What `./dev install` lays down is found by pkg-config and by find_package, and a program runs on it."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = os.environ.get("CMAKE", "cmake")
PROGRAM = """\
#include <stdio.h>
#include <weir/weir.h>
int main(void) {
  weir_config *config = NULL;
  weir_error err = {0};
  if (weir_config_new(&config, &err)) return 1;
  weir_config_free(config);
  puts(weir_version());
  return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("compiler", "suffix"), [("cc", "c"), ("c++", "cpp")])
def test_pkg_config(prefix, tmp_path, compiler, suffix):
    (pc,) = prefix.rglob("weir.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "weir", env=environment).split()
    source = tmp_path / f"program.{suffix}"
    source.write_text(PROGRAM.replace("= {0}", "= {}") if suffix == "cpp" else PROGRAM)
    run(compiler, source, "-o", tmp_path / "program", *flags, f"-Wl,-rpath,{pc.parent.parent}")
    version = run("pkg-config", "--modversion", "weir", env=environment)
    assert run(tmp_path / "program") == version


def test_find_package(prefix, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(consumer C)\n"
        "find_package(weir 0.1 REQUIRED)\n"
        "add_executable(program program.c)\n"
        "target_link_libraries(program PRIVATE weir::weir)\n"
    )
    run(CMAKE, "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(CMAKE, "--build", tmp_path / "build")
    assert run(tmp_path / "build/program").strip()


def test_no_path_of_the_build_is_left(prefix):
    for path in prefix.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert str(ROOT).encode() not in path.read_bytes(), f"{path.relative_to(prefix)} names the checkout"
