"""Where the programs are, and an environment of Python that has DuckDB and PyArrow."""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "target" / "differential"
# Answers are compared with those of one version of each: a newer one may answer otherwise.
PACKAGES = ["duckdb==2.0.0", "pyarrow==26.0.1"]


def enter():
    """Runs this script again inside the environment, which is made once and kept."""
    home = CACHE / "venv"
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


class Programs:
    """The programs of this checkout: built as the tests build them, so that nothing is compiled twice in CI."""

    def __init__(self, release=False):
        folder = ROOT / "target" / ("release" if release else "debug")
        built = ["cargo", "build", "--quiet", "--workspace", "--bins", "--examples"]
        if release:
            built.append("--release")
        # Only for work on the scripts: programs that are there already.
        if "PILASTER_PROGRAMS" in os.environ:
            folder = Path(os.environ["PILASTER_PROGRAMS"])
        else:
            subprocess.run(built, check=True, cwd=ROOT)
        self.pilaster = folder / "pilaster"
        self.sql_answers = folder / "examples" / "sql_answers"
        self.tpch_tables = folder / "examples" / "tpch_tables"

    def run(self, *arguments):
        """Runs `pilaster`; what it says is in the exception when it fails."""
        command = [str(self.pilaster), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise ProgramFailed(command, done.returncode, done.stderr.strip())


class ProgramFailed(Exception):
    def __init__(self, command, status, said):
        super().__init__(f"{' '.join(command)}\nexit status {status}: {said}")
        self.said = said
