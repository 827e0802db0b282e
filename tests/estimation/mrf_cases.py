"""Small helpers shared by the tests of Markov random field learners."""

import numpy as np

from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

UNITS = {
    "add-remove": PrivacyUnit(),
    "replace-one": PrivacyUnit(relation="replace-one"),
    "person": PrivacyUnit("person", max_rows=2),
}
BUDGETS = {"pure": PureDP(1), "zcdp": ZCDP(0.1), "approx": ApproxDP(1, 1e-6)}


def table_of(codes, domain):
    return MemoryTable(domain, [codes[:, i].astype(np.uint8) for i in range(len(domain))], threads=1)


def sampled(model, n, seed):
    return table_of(model.sample(n, seed).codes, model.domain)
