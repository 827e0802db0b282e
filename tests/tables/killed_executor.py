"""Run by test_spark.py: a cluster of two executors, one of which is killed while its rows are in use."""

import os
import signal
import sys
from pathlib import Path

import engines
import java

java.prepare()
spark = java.session("local-cluster[2,1,1024]")

from discreet import encode, open_table  # noqa: E402


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
after = engines.same_sums(table, reference, domain)
chosen = engines.all_cells(table.clip(2, engines.KEY)) == engines.all_cells(reference.clip(2, engines.KEY))
print("RESULT", len(first), before, after, chosen)
spark.stop()
