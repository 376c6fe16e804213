"""Two engines that answer queries: Pilaster in a process of its own, DuckDB in this one."""

import select
import subprocess

import duckdb
import pyarrow

QUERY_SECONDS = 300


class QueryFailed(Exception):
    """The engine refused the query, or failed at it."""


class Pilaster:
    """Many queries, one process; it is started again after it died or hung."""

    def __init__(self, program, *options, seconds=QUERY_SECONDS):
        self.command = [str(program), *map(str, options)]
        self.seconds = seconds
        self.views = []
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for view in self.views:
            self.ask(view)

    def view(self, name, path):
        """Gives what lies at a path a name."""
        statement = f"""CREATE OR REPLACE VIEW {name} AS SELECT * FROM '{path}'"""
        self.views = [view for view in self.views if f" VIEW {name} AS " not in view] + [statement]
        self.query(statement)

    def query(self, text):
        """The answer as an Arrow table."""
        if self.process is None:
            self.start()
        return self.ask(text)

    def ask(self, text):
        assert "\n" not in text, "a query is one line"
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
            head = self.read(5)
            body = self.read(int.from_bytes(head[1:], "little"))
        except (OSError, EOFError) as error:
            self.close()
            raise QueryFailed(f"the process ended: {error}") from error
        if head[:1] == b"E":
            raise QueryFailed(body.decode(errors="replace"))
        return pyarrow.ipc.open_stream(body).read_all()

    def read(self, count):
        parts = []
        while count:
            ready, _, _ = select.select([self.process.stdout], [], [], self.seconds)
            if not ready:
                raise EOFError(f"no answer within {self.seconds} seconds")
            part = self.process.stdout.read1(count)
            if not part:
                raise EOFError(f"exit status {self.process.wait()}")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class Duck:
    """DuckDB over the rows of Parquet files."""

    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("SET threads = 1")

    def view(self, name, path):
        # Loaded, not read in place: DuckDB 2.0 prunes by the bounds of Parquet, which know nothing of NaN, and so misses it in IN.
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM read_parquet('{path}')")

    def query(self, text):
        try:
            return self.connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            raise QueryFailed(str(error)) from error
