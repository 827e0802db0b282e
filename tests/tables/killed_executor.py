"""Run by test_spark.py: a cluster of two executors, one of which is killed while its rows are in use."""

import os
import signal
import sys
import threading
from pathlib import Path

import engines
import java

java.prepare()
spark = java.session("local-cluster[2,1,1024]")

from discreet import Curator, Ledger, PureDP, encode, open_table, resolve  # noqa: E402
from discreet.privacy.curator import ExactCurator  # noqa: E402
from discreet.tables.spark import SparkTable  # noqa: E402


def executors():
    """Processes of executors that this very process has started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue

    def ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    out = []
    for pid in filter(ours, list(parents)):
        try:
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                out.append(pid)
        except OSError:
            continue
    return sorted(out)


folder = Path(sys.argv[1])
domain, rows = engines.mixed_domain(), engines.mixed_rows(2000, 4)
engines.write_parquet(folder / "rows.parquet", rows)
reference = encode(rows, domain, unit="who")
frame = spark.read.parquet(str(folder / "rows.parquet")).repartition(4)
table = open_table(frame, domain, unit="who")
before = engines.same_sums(table, reference, domain)
first = executors()
os.kill(first[0], signal.SIGKILL)
table.forget()  # what was counted before is kept, and the rows would not be asked
after = engines.same_sums(table, reference, domain)
chosen = engines.all_cells(table.clip(2, engines.KEY)) == engines.all_cells(reference.clip(2, engines.KEY))


# A fit: while the rows are counted the second time, an executor is killed.
class Killing(SparkTable):
    passes = 0

    def count(self, cliques, grouped=()):
        return self.count_rows(cliques, grouped)

    def _run(self, job):
        Killing.passes += 1
        if Killing.passes == 2:
            doomed = executors()[0]
            threading.Timer(0.2, os.kill, (doomed, signal.SIGKILL)).start()
        return super()._run(job)


plain = open_table(frame, domain)
plain.__class__ = Killing
spec = resolve(domain, graph="word -> flag; word -> number", family="network", method="two_stage")
books = []
for name, held in (("spark", plain), ("memory", encode(rows, domain))):
    ledger = Ledger.create(folder / f"{name}.db", PureDP(3))
    with Curator(held, budget=PureDP(1), ledger=ledger) as curator:
        spec.learn(curator)
        books.append((str(curator.spent), str(ledger.spent), len(ledger.entries)))
paid = books[0] == books[1] and books[0][0] == str(PureDP(1)) and Killing.passes >= 2
Killing.passes = 0
sums = [
    [m.values.tolist() for m in spec.learn(ExactCurator(held)).measurements] for held in (plain, encode(rows, domain))
]
print("RESULT", len(first), before, after, chosen, paid, sums[0] == sums[1] and Killing.passes >= 2)
spark.stop()
