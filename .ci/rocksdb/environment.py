"""An environment of Python that has RocksDB: made once, and kept."""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# One version: what a newer one writes otherwise should be seen when this line is changed.
PACKAGES = ["rocksdict==0.3.29"]


def enter():
    """Runs this script again inside the environment."""
    home = ROOT / "target" / "rocksdb-judge" / "venv"
    python = home / "bin" / "python"
    if Path(sys.prefix).resolve() == home.resolve():
        return
    stamp = home / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
        print("installing", *PACKAGES, flush=True)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    os.execv(python, [str(python), *sys.argv])


def reader():
    """The program that prints the pairs of databases, built as the tests build it."""
    # Only for work on the scripts: programs that are there already.
    if "PILASTER_PROGRAMS" in os.environ:
        return Path(os.environ["PILASTER_PROGRAMS"]) / "rocksdb_pairs"
    subprocess.run(
        ["cargo", "build", "--quiet", "-p", "pilaster-rocksdb", "--example", "rocksdb_pairs"], check=True, cwd=ROOT
    )
    return ROOT / "target" / "debug" / "examples" / "rocksdb_pairs"
