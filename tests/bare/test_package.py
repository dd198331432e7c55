"""The .debs of ./dev package in a bare root of the system that it was built on: installed with what it depends on, used as
its README says, and removed again."""

import platform
import shutil
import subprocess

import pytest
from roots import ROOT, run_in

# Each step as it is typed, and after `->` what must be among its words.
STEPS = """
apt-get -qq update
apt-get -qq install -y --no-install-recommends /root/weir.deb
weir version -> weir 0.
weir init numbers > /root/numbers.yaml
weir run /root/numbers.yaml -> all delivered and committed: 1000000 rows
weir verify /root/numbers.yaml -> verified: the targets agree with the store
test -s /usr/share/man/man1/weir.1
test -s /usr/share/man/man5/weir-pipeline.5
test -s /usr/share/bash-completion/completions/weir
test -s /lib/systemd/system/weir@.service
test -z "$(find /etc/systemd -name 'weir*')"
ldconfig -p -> libweir.so.0
apt-get -qq install -y --no-install-recommends gcc libc6-dev make pkg-config
make -C /root/sink-c
cd /root/sink-c && weir run pipeline.yaml -> all delivered and committed
! weir connectors kafka
apt-get -qq install -y --no-install-recommends /root/weir-kafka.deb
weir connectors kafka -> source kafka
dpkg -r weir-kafka
! weir connectors postgres
apt-get -qq install -y --no-install-recommends /root/weir-postgres.deb
weir connectors postgres -> sink postgres
dpkg -r weir-postgres
dpkg -r weir
test -z "$(find /usr /etc -path '*weir*' ! -path '*/share/keyrings/*')"
test -z "$(ldconfig -p | grep weir)"
test -n "$(ls /root/out/numbers)"
"""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bare_root", [platform.freedesktop_os_release().get("VERSION_CODENAME")], indirect=True)
def test_the_package_installs_runs_and_goes(bare_root):
    done = subprocess.run([ROOT / "dev", "package"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("weir", "weir-adbc", "weir-kafka", "weir-postgres"):
        (package,) = (ROOT / "build/release").glob(f"{name}_*.deb")
        shutil.copy(package, bare_root / f"root/{name}.deb")
    shutil.copytree(ROOT / "examples/sink-c", bare_root / "root/sink-c", ignore=shutil.ignore_patterns("*.so"))
    for step in STEPS.strip().splitlines():
        command, _, words = step.partition(" -> ")
        status, text = run_in(bare_root, command)
        assert status == 0, f"{command}\n{text[-4000:]}"
        assert words in text, f"{command}\n{text[-4000:]}"
