"""Makes the networks in src/discreet/data from their BIF files; the result is the same bytes every time.

.venv/bin/python tools/build_networks.py DIRECTORY_WITH_BIF_FILES [TARGET]
"""

import sys
from pathlib import Path

from discreet.files import network_from_data
from discreet.io.bif import read_bif
from discreet.io.native import save_model

REFERENCES = {
    "asia": "S. Lauritzen, D. Spiegelhalter: Local computations with probabilities on graphical structures and their "
    "application to expert systems. Journal of the Royal Statistical Society B 50 (1988), 157-224.",
    "sachs": "K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger, G. P. Nolan: Causal protein-signaling networks "
    "derived from multiparameter single-cell data. Science 308 (2005), 523-529.",
    "child": "D. J. Spiegelhalter, R. G. Cowell: Learning in probabilistic expert systems. In Bayesian Statistics 4 "
    "(1992), 447-466, Clarendon Press.",
    "alarm": "I. A. Beinlich, H. J. Suermondt, R. M. Chavez, G. F. Cooper: The ALARM monitoring system: a case study "
    "with two probabilistic inference techniques for belief networks. Proceedings of the 2nd European Conference on "
    "Artificial Intelligence in Medicine (1989), 247-256, Springer.",
}
ORIGIN = "Bayesian-network repository of bnlearn, https://www.bnlearn.com/bnrepository/"
LICENSE = "Creative Commons Attribution-ShareAlike 3.0 (CC BY-SA 3.0), https://creativecommons.org/licenses/by-sa/3.0/"


def build(source: Path, target: Path) -> None:
    for name, reference in REFERENCES.items():
        data = read_bif(source / f"{name}.bif")
        changes = ["converted from BIF to discreet's own format", *data.notes]
        card = {
            "name": name,
            "what": "a public reference network; not a release, and not learned from private records",
            "origin": ORIGIN,
            "license": LICENSE,
            "reference": reference,
            "changes": changes,
        }
        network = network_from_data(data, card)
        save_model(network, target / f"{name}.zip")
        print(f"{name}: {len(network.domain)} columns, {len(network.edges)} arrows -> {target / f'{name}.zip'}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    here = Path(__file__).resolve().parents[1] / "src" / "discreet" / "data"
    build(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else here)
