"""Runs one peer in an interpreter of its own, because its pinned dependencies cannot live beside ours.

    python _peers_work.py PEER RECORDS.csv TASK.json SYNTHETIC.csv

``RECORDS.csv`` holds whole numbers 0 … k − 1 in named columns. ``TASK.json`` has ``levels`` (each column's k), the
budget (``epsilon`` with ``delta``, which is 0 for pure DP, and ``rho``, the zCDP that they are worth), ``parents`` and
``records``, how many to make. One line of JSON comes out: the package's version, the seconds of fit and of making, and
both in processor seconds.
Nothing is tuned: settings are each package's own, but for the domain, which is told where it can be.
"""

import importlib.metadata
import json
import os
import sys
import tempfile
import time

import pandas as pd


def dpmm(mechanism, frame, task):
    """It is told the domain, and needs a δ for its accounting."""
    import dpmm.models.aim
    import dpmm.models.mst
    import dpmm.models.priv_bayes

    told = {"epsilon": task["epsilon"], "delta": task["delta"], "n_jobs": 1}
    if mechanism == "PrivBayes":
        model = dpmm.models.priv_bayes.PrivBayesGM(degree=task["parents"], **told)
    else:
        model = {"MST": dpmm.models.mst.MSTGM, "AIM": dpmm.models.aim.AIMGM}[mechanism](**told)
    model.set_domain({name: int(k) for name, k in task["levels"].items()})
    model.fit(frame)
    return lambda: model.generate(n_records=task["records"])


def datasynthesizer(mechanism, frame, task):
    """PrivBayes in its correlated mode, pure DP; it reads the domain off the records."""
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    folder = tempfile.mkdtemp(dir=os.path.dirname(sys.argv[4]))
    words, description = os.path.join(folder, "words.csv"), os.path.join(folder, "description.json")
    frame.map(lambda code: f"v{code}").to_csv(words, index=False)
    describer = DataDescriber(category_threshold=100)
    describer.describe_dataset_in_correlated_attribute_mode(
        words,
        k=task["parents"],
        epsilon=task["epsilon"],
        attribute_to_datatype=dict.fromkeys(frame, "String"),
        attribute_to_is_categorical=dict.fromkeys(frame, True),
        attribute_to_is_candidate_key=dict.fromkeys(frame, False),
        seed=int.from_bytes(os.urandom(4), "little"),
    )
    describer.save_dataset_description_to_file(description)

    def make():
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(task["records"], description)
        return generator.synthetic_dataset.map(lambda word: int(str(word)[1:]))[list(frame)]

    return make


def smartnoise(mechanism, frame, task):
    """It reads the domain off the records: no budget is set aside for that (``preprocessor_eps=0``)."""
    from snsynth import Synthesizer

    model = Synthesizer.create(mechanism.lower(), epsilon=float(task["epsilon"]), delta=task["delta"])
    model.fit(frame, categorical_columns=list(frame), preprocessor_eps=0.0)
    return lambda: model.sample(task["records"])


def opendp(mechanism, frame, task):
    """It is told the domain. With δ = 0 pure DP, else the zCDP that (ε, δ) is worth."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    keys = {name: list(range(int(k))) for name, k in task["levels"].items()}

    def release(spent):
        rows, unit = pl.from_pandas(frame).lazy(), dp.unit_of(contributions=1)
        context = dp.Context.compositor(data=rows, privacy_unit=unit, privacy_loss=dp.loss_of(**spent))
        algorithm = dp.mbi.MST() if mechanism == "MST" else dp.mbi.AIM(queries=2)
        return context.query(**spent).contingency_table(keys=keys, algorithm=algorithm).release()

    # Its MST refuses its own split of many budgets by the last bit; one a hair smaller will do.
    budgets = [{"rho": task["rho"] * (1 - k / 9973)} for k in range(100)]
    for spent in budgets if task["delta"] else [{"epsilon": float(task["epsilon"])}]:
        try:
            table = release(spent)
            break
        except dp.OpenDPException as refused:
            if "insufficient budget" not in str(refused) or spent == budgets[-1]:
                raise

    def make():
        # Its default, method="round", loses most of what the table knows of pairs: on sachs 0.12 for 0.03.
        made = table.synthesize(rows=task["records"], method="sample").to_pandas()
        return made.fillna(0).astype(int)  # it has a level of its own for absent values; noise alone can be there

    return make


def dpsynth(mechanism, frame, task):
    """It is told the domain, and finds its own budget for (ε, δ)."""
    import dpsynth
    import mbi
    import numpy as np

    config = getattr(dpsynth.discrete_mechanisms, f"{mechanism}Config")()
    domains = {
        name: dpsynth.CategoricalAttribute(possible_values=list(range(int(k)))) for name, k in task["levels"].items()
    }
    synthesizer = dpsynth.TabularSynthesizer(domains=domains, discrete_mechanism=config)
    calibrated = synthesizer.calibrate(epsilon=float(task["epsilon"]), delta=task["delta"])
    model = calibrated(np.random.default_rng(), frame).discrete_mechanism_result.model

    def make():
        # As many records as are wanted, by the function that makes its own.
        made = mbi.extensions.synthetic_data(model, task["records"]).to_dict()
        return pd.DataFrame({name: made[name] for name in frame})

    return make


PACKAGES = {
    "dpsynth": ("dpsynth", dpsynth),
    "dpmm": ("dpmm", dpmm),
    "DataSynthesizer": ("DataSynthesizer", datasynthesizer),
    "SmartNoise": ("smartnoise-synth", smartnoise),
    "OpenDP": ("opendp", opendp),
}


def main(peer, records, task_file, out):
    package, mechanism = peer.split(" ")
    distribution, run = PACKAGES[package]
    frame = pd.read_csv(records)
    with open(task_file) as stream:
        task = json.load(stream)
    begun, working = time.perf_counter(), time.process_time()
    make = run(mechanism, frame, task)
    fitted = time.perf_counter()
    made = pd.DataFrame(make())
    made.columns = list(frame)
    done, worked = time.perf_counter(), time.process_time() - working
    made.to_csv(out, index=False)
    times = {"fit_seconds": fitted - begun, "make_seconds": done - fitted, "cpu_seconds": worked}
    print(json.dumps({"version": importlib.metadata.version(distribution), **times}))


if __name__ == "__main__":
    main(*sys.argv[1:])
