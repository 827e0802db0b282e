"""The definitions of the families, written out over every record: slow, short, and independent of the package."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st

from discreet.attribute import Attribute, Groups
from discreet.domain import Domain
from discreet.models import (
    BayesianNetwork,
    BinaryMRF,
    GroupedField,
    IsingModel,
    MarkovRandomField,
    PairwiseModel,
    generators,
)

FAMILIES = ("ising", "pairwise", "binary", "markov", "bayesian", "grouped")


def all_codes(domain):
    return np.array(list(product(*map(range, domain.shape))), dtype=int).reshape(-1, len(domain))


def weight(model, code):
    """The unnormalised probability of one record, straight from the definition of its family."""
    names = model.domain.names
    if isinstance(model, IsingModel):
        z = [(-1, 1)[c] for c in code]
        p = len(z)
        h = sum(model.A[i][j] * z[i] * z[j] for i in range(p) for j in range(i + 1, p))
        return np.exp(h + sum(model.theta[i] * z[i] for i in range(p)))
    at = dict(zip(names, code, strict=True))
    if isinstance(model, PairwiseModel):
        h = sum(model.W[a, b][at[a], at[b]] for a, b in model.W)
        return np.exp(h + sum(model.Theta[n][at[n]] for n in names))
    if isinstance(model, BinaryMRF):
        z = {n: (-1, 1)[c] for n, c in at.items()}
        return np.exp(sum(value * np.prod([z[n] for n in I]) for I, value in model.coefficients.items()))
    if isinstance(model, GroupedField):
        groups = {a.groups.of.name: a.groups.codes for a in model.field.domain.attributes if a.groups is not None}
        own = [groups[n][c] if n in groups else c for n, c in at.items()]
        return weight(model.field, own) * np.prod([model.within[n][at[n]] for n in groups])
    if isinstance(model, MarkovRandomField):
        return np.exp(sum(f.values[tuple(at[n] for n in clique)] for clique, f in model.potentials.items()))
    assert isinstance(model, BayesianNetwork)
    return np.prod([model.tables[n][(*(at[q] for q in model.parents[n]), at[n])] for n in names])


def joint(model):
    """The table of probabilities of all records, one axis a column."""
    table = np.array([weight(model, code) for code in all_codes(model.domain)]).reshape(model.domain.shape)
    return table / table.sum()


def marginal(model, table, names, evidence=None):
    """P(names | evidence) from the joint table; evidence as codes; axes in the order of names."""
    domain = model.domain
    index = tuple((evidence or {}).get(n, slice(None)) for n in domain)
    rest = [n for n in domain if n not in (evidence or {})]
    part = np.asarray(table[index])
    part = part / part.sum()
    part = part.sum(axis=tuple(i for i, n in enumerate(rest) if n not in names))
    kept = [n for n in rest if n in names]
    return part.transpose([kept.index(n) for n in names])


def random_model(family, rng, columns=None, zeros=False):
    """A random model with up to five columns of unequal numbers of levels and a random graph, possibly empty."""
    p = int(rng.integers(1, 6)) if columns is None else columns
    pairs = [e for e in combinations(range(p), 2) if rng.random() < 0.5]
    levels = [int(k) for k in rng.integers(1, 4, p)]
    if family == "ising":
        return generators.ising(p, pairs, weight=(0.1, 1.5), field=(0.0, 1.0), signs="random", random_state=rng)
    if family == "pairwise":
        return generators.pairwise(p, pairs, levels=levels, weight=1.2, field=1.0, random_state=rng)
    if family == "grouped":
        return in_groups(random_model("markov", rng, p, zeros), rng, zeros)
    if family == "binary":
        sets = [I for t in (1, 2, 3, 4) for I in combinations(range(p), t) if rng.random() < 0.35]
        return generators.binary(p, sets, weight=(0.1, 1.0), random_state=rng)
    domain = Domain.of({f"x{i}": k for i, k in enumerate(levels)})
    if family == "markov":
        potentials = {}
        for t in (1, 2, 3):
            for names in combinations(domain.names, t):
                if rng.random() < 0.35:
                    table = 1.5 * rng.standard_normal(domain.project(names).shape)
                    if zeros:
                        table[rng.random(table.shape) < 0.2] = -np.inf
                        table.flat[0] = 0.0  # all zeros in every table leave at least the first record possible
                    potentials[names] = table
        return MarkovRandomField(domain, potentials)
    network = generators.network(p, levels=levels, max_parents=3, random_state=rng)
    if not zeros:
        return network
    tables = {}
    for name, table in network.tables.items():
        with_zeros = np.where(rng.random(table.shape) < 0.25, 0.0, table)
        with_zeros[..., 0] += 1e-3
        tables[name] = with_zeros / with_zeros.sum(axis=-1, keepdims=True)
    return BayesianNetwork(network.domain, network.parents, tables)


def in_groups(field, rng, zeros):
    """Some columns of the field are groups of the levels of columns that have more."""
    columns, grouped, within = [], [], {}
    for a in field.domain.attributes:
        codes = rng.permutation([*range(a.size), *rng.integers(0, a.size, rng.integers(0, 3))])
        if rng.random() < 0.3:
            columns.append(a)
            grouped.append(a)
            continue
        own = Attribute.categorical(a.name, len(codes))
        columns.append(own)
        grouped.append(Attribute.categorical(f"{a.name} in groups", a.size, groups=Groups(own, tuple(map(int, codes)))))
        shares = rng.random(len(codes)) * (rng.random(len(codes)) > 0.2 if zeros else 1)
        shares[np.unique(codes, return_index=True)[1]] += 0.1
        within[a.name] = shares / np.bincount(codes, shares)[codes]
    domain = Domain(tuple(grouped))
    renamed = dict(zip(field.domain.names, domain.names, strict=True))
    potentials = {tuple(renamed[n] for n in c): f.values for c, f in field.potentials.items()}
    return GroupedField(Domain(tuple(columns)), MarkovRandomField(domain, potentials), within)


@st.composite
def models(draw, families=FAMILIES, zeros=None):
    family = draw(st.sampled_from(families))
    seed = draw(st.integers(0, 2**32 - 1))
    with_zeros = draw(st.booleans()) if zeros is None else zeros
    return random_model(family, np.random.default_rng(seed), draw(st.integers(1, 5)), with_zeros)


@st.composite
def models_with_question(draw):
    """A model, names asked in random order, and possible evidence on other columns (as codes)."""
    model = draw(models())
    names = draw(st.permutations(model.domain.names))
    asked = names[: draw(st.integers(1, len(names)))]
    free = [n for n in names if n not in asked]
    observed = free[: draw(st.integers(0, len(free)))]
    possible = np.argwhere(joint(model) > 0)
    record = possible[draw(st.integers(0, len(possible) - 1))]
    return model, tuple(asked), {n: int(record[model.domain.index(n)]) for n in observed}


def labelled(model, codes):
    return {name: model.domain[name].labels[code] for name, code in codes.items()}
