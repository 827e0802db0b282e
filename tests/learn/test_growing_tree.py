"""The growing junction tree: as large as it says, never larger than it may be, and quick."""

import itertools
import math

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.graph import triangulate
from discreet.learn.fields import tree as module
from discreet.learn.fields.tree import Tree


def domain_of(columns, seed):
    rng = np.random.default_rng(seed)
    return Domain.of({f"c{i:03d}": int(rng.integers(1, 5)) for i in range(columns)})


def candidates(domain, count, seed):
    rng = np.random.default_rng(seed)
    return [
        domain.clique([domain.names[i] for i in rng.choice(len(domain), int(rng.integers(1, 4)), replace=False)])
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_cells_are_those_of_its_own_elimination_order(seed):
    domain = domain_of(12, seed)
    tree = Tree(domain, [(n,) for n in domain.names], 3000)
    taken = [(n,) for n in domain.names]
    for clique in candidates(domain, 60, seed):
        if tree.takes(clique):
            taken.append(clique)
        made = triangulate(domain, taken, order=tree._order)
        assert tree.cells == made.forecast().total_cells <= 3000
        assert {frozenset(c) for c in tree.cliques} <= {frozenset(c) for c in taken}


@pytest.mark.parametrize("seed", range(3))
def test_it_takes_about_what_a_tree_made_anew_each_time_would(seed):
    domain = domain_of(15, seed)
    tree = Tree(domain, [(n,) for n in domain.names], 2000)
    anew = [(n,) for n in domain.names]
    taken = 0
    for clique in candidates(domain, 80, seed):
        taken += tree.takes(clique)
        if triangulate(domain, [*anew, clique], tries=1).forecast().total_cells <= 2000:
            anew.append(clique)
    assert taken >= 0.85 * (len(anew) - len(domain))


def test_what_is_there_already_is_taken_even_when_the_tree_is_full():
    domain = Domain.of(dict.fromkeys("abc", 3))
    tree = Tree(domain, [("a", "b", "c")], 27)
    assert tree.takes(("a", "b")) and tree.cells == 27
    assert not Tree(domain, [("a",), ("b",), ("c",)], 12).takes(("a", "b", "c"))


def test_hundreds_of_columns_need_few_trees_made_anew(monkeypatch):
    """A bound on the work, not on the time."""
    made = []

    def counted(*given, **named):
        made.append(1)
        return triangulate(*given, **named)

    monkeypatch.setattr(module, "triangulate", counted)
    names = [f"c{i:03d}" for i in range(300)]
    domain = Domain.of(dict.fromkeys(names, 2))
    tree = Tree(domain, list(itertools.pairwise(names)), 5000)
    rng = np.random.default_rng(0)
    taken = sum(tree.takes(domain.clique([names[i] for i in rng.choice(300, 2, replace=False)])) for _ in range(3000))
    assert taken > 30 and len(made) <= math.ceil(taken / 2) + 2 * module.PATIENCE
