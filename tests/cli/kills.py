"""Programs that are killed again and again until one comes to its end."""

import signal
import subprocess


def run_through_kills(command, folder, steps):
    """Starts `command`, kills it after steps[0] milliseconds, starts it again, and so on; each run lives a
    little longer than the one before, so the kills fall all over its life. The last one is left alone. Its
    exit status, and how many were killed."""
    killed = 0
    for milliseconds in steps:
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        try:
            return process.wait(milliseconds / 1000), killed
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    return subprocess.run(command, cwd=folder, timeout=60).returncode, killed
