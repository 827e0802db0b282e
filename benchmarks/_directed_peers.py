"""Runs one peer in an interpreter of its own, because its pinned dependencies cannot live beside ours.

    python _directed_peers.py PEER RECORDS.csv LEVELS.json EPSILON PARENTS SYNTHETIC.csv

``RECORDS.csv`` holds whole numbers 0 … k − 1 in named columns, ``LEVELS.json`` maps each column to k.
"""

import json
import os
import sys
import tempfile

import pandas as pd


def dpmm(records: str, levels: dict, epsilon: float, parents: int, out: str) -> None:
    """PrivBayes of dpmm; it is told the domain, and needs a δ for its accounting."""
    from dpmm.models.priv_bayes import PrivBayesGM

    frame = pd.read_csv(records)
    model = PrivBayesGM(epsilon=epsilon, delta=1e-6, degree=parents, n_jobs=1)
    model.set_domain({name: int(k) for name, k in levels.items()})
    model.fit(frame)
    model.generate(n_records=50_000).to_csv(out, index=False)


def datasynthesizer(records: str, levels: dict, epsilon: float, parents: int, out: str) -> None:
    """PrivBayes of DataSynthesizer in its correlated mode; it reads the domain off the records."""
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    frame = pd.read_csv(records)
    with tempfile.TemporaryDirectory() as folder:
        words, description = os.path.join(folder, "words.csv"), os.path.join(folder, "description.json")
        frame.map(lambda code: f"v{code}").to_csv(words, index=False)
        describer = DataDescriber(category_threshold=100)
        describer.describe_dataset_in_correlated_attribute_mode(
            words,
            k=parents,
            epsilon=epsilon,
            attribute_to_datatype=dict.fromkeys(frame, "String"),
            attribute_to_is_categorical=dict.fromkeys(frame, True),
            attribute_to_is_candidate_key=dict.fromkeys(frame, False),
            seed=int.from_bytes(os.urandom(4), "little"),
        )
        describer.save_dataset_description_to_file(description)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(50_000, description)
        made = generator.synthetic_dataset
    made.map(lambda word: int(str(word)[1:]))[list(frame)].to_csv(out, index=False)


if __name__ == "__main__":
    peer, records, levels, epsilon, parents, out = sys.argv[1:]
    with open(levels) as file:
        known = json.load(file)
    {"dpmm": dpmm, "DataSynthesizer": datasynthesizer}[peer](records, known, float(epsilon), int(parents), out)
