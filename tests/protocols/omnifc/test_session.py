"""`omnifc` as a session: exact, lossless, and refused in time."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris
from support.tables import within

from clustering_protocols import catalogue, engine, simulation
from clustering_protocols.algorithms.embedding import classical_scaling
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.omnifc import (
    OmniFC,
    analyst,
    limits,
    messages,
    party,
    reference as pooled,
    units,
)
from clustering_protocols.secrecy.prime import P
from clustering_protocols.terms.preparation import Ranges
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout
from tests.protocols.omnifc.shares import (
    answers,
    assert_step_fits_memory,
    integer_distances,
    needed_answers,
    peak_bytes,
    shares,
    stream,
)

IRIS = load_iris().data
ALGORITHMS: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "fuzzy_cmeans": {"algorithm": "fuzzy_cmeans", "fuzziness": 1.1},
    "spectral": {"algorithm": "spectral"},
    "dbscan": {"algorithm": "dbscan"},
    "single": {"algorithm": "hierarchical", "linkage": "single"},
    "complete": {"algorithm": "hierarchical", "linkage": "complete"},
    "average": {"algorithm": "hierarchical", "linkage": "average"},
    "ward": {"algorithm": "hierarchical", "linkage": "ward"},
    "kmedoids": {"algorithm": "kmedoids"},
}


def params_of(name: str, k: int, **more: Any) -> OmniFC:
    clusters = None if name == "dbscan" else k
    return OmniFC(n_clusters=clusters, **ALGORITHMS[name], **more)


def evaluated(params: OmniFC, X: Any, parties: int = 3) -> simulation.SessionEvaluation:
    return simulation.evaluate(
        params, X, simulation.split(X, Layout.lattice(parties), 1), 1
    )


def agreement(first: Any, second: Any) -> float:
    assert set(first) == set(second)
    ours, theirs = (
        np.concatenate([side[slot].labels for slot in sorted(side)])
        for side in (first, second)
    )
    return adjusted_rand(ours, theirs)


# Exact


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    kept: list[Any] = []
    see = analyst.build_clustering_input

    def recording(params: Any, squared: Any, X: Any) -> Any:
        kept.append(squared.copy())
        return see(params, squared, X)

    monkeypatch.setattr(analyst, "build_clustering_input", recording)
    return kept


@pytest.mark.parametrize(
    ("parties", "options"),
    [
        (3, {}),
        (6, {"segments": 2}),
        (7, {"segments": 2, "noise": 2, "scaling": "minmax"}),
        (4, {"hide_segments": False, "scaling": "none"}),
        (5, {"noise": 2, "scaling": "unit_norm"}),
        (3, {"segments": 1, "bits": 12}),
        (17, {"segments": 6, "noise": 3}),  # fewer features than segments
    ],
)
def test_the_analyst_decodes_the_distances_of_the_scaled_rows(
    decoded: list[Any], parties: int, options: dict[str, Any]
) -> None:
    params = OmniFC(n_clusters=2, **options)
    parts = simulation.split(IRIS, Layout.lattice(parties), 2)
    run = simulation.run(params, parts.layout, parts.data, 2)
    rows = [matrix(parts.data[slot])[run.orders[slot]] for slot in parts.layout.names]
    Z = pooled.scale(params, np.concatenate(rows))
    found, real = np.sqrt(decoded[0]), pdist(Z)
    bits = run.summary.bits  # type: ignore[union-attr]  # the summary of omnifc
    assert bits == options.get("bits", bits)
    error = np.sqrt(np.mean(np.square(found - real)))
    bound = 2.0 ** (1 - bits) * np.abs(Z).max() * np.sqrt(Z.shape[1])
    assert 0 < error <= bound


# Lossless


@pytest.mark.parametrize("algorithm", ["kmeans", "hierarchical"])
def test_rows_of_distances_are_features(algorithm: Any) -> None:
    params = OmniFC(
        n_clusters=3,
        algorithm=algorithm,
        features="distance_rows",
        scaling="none",
        n_init=20,
    )
    rows = squareform(pdist(IRIS))
    average = AgglomerativeClustering(3, linkage="average", metric="precomputed")
    if algorithm == "kmeans":
        expected = KMeans(3, n_init=20, random_state=0).fit_predict(rows)
    else:
        expected = average.fit_predict(squareform(pdist(rows)))
    assert adjusted_rand(expected, evaluated(params, IRIS).labels) == 1.0


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_pooled_ranges_have_to_hold_own_rows(scaling: str) -> None:
    """Residues beyond them would wrap around the field."""
    params = params_of("kmeans", 3, scaling=scaling)
    data = MatrixSource(IRIS, list("abcd"))
    low, high = IRIS.min(axis=0), IRIS.max(axis=0)
    fits = units.build_declared_scale(scaling, Ranges(low, high))
    assert (party.scaled_rows(params, fits, data).min(axis=0) == 0).all()
    for ranges in (Ranges(low + 0.1, high), Ranges(low, high - 0.1)):
        narrow = units.build_declared_scale(scaling, ranges)
        with pytest.raises(
            ProtocolFailed, match="do not include all values of this party"
        ):
            party.scaled_rows(params, narrow, data)


# Answers without masks


def plain_answers(segments: int, noise: int, parties: int) -> tuple[Any, Any, Any]:
    rows = np.arange(20, dtype=np.uint64).reshape(5, 4) ** np.uint64(3)
    held = shares(rows, segments, noise, parties, stream(6))
    slots = Layout.lattice(parties).names
    return slots, dict(zip(slots, answers(held), strict=True)), integer_distances(rows)


def decode(params: OmniFC, slots: Any, given: Any) -> list[float]:
    decoder = analyst.DistanceDecoder(params, slots, given, 0)
    whole = decoder.read(slice(len(next(iter(given.values())))))
    assert decoder.read(slice(1, 3)).tolist() == whole[1:3].tolist()
    return whole.tolist()


def open_params(segments: int, noise: int) -> OmniFC:
    return OmniFC(n_clusters=2, segments=segments, noise=noise, hide_segments=False)


@pytest.mark.parametrize(("segments", "noise"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_any_enough_answers_decode_alike_and_fewer_are_refused(
    segments: int, noise: int
) -> None:
    needed = needed_answers(segments, noise)
    slots, all_, expected = plain_answers(segments, noise, needed + 2)
    params = open_params(segments, noise)
    for count in range(needed, needed + 3):
        for used in combinations(slots, count):
            some = {slot: all_[slot] for slot in used}
            assert decode(params, slots, some) == expected
    few = dict(list(all_.items())[: needed - 1])
    with pytest.raises(ProtocolFailed, match=f"{needed} are needed"):
        decode(params, slots, few)


@pytest.mark.threat(84)
@pytest.mark.parametrize("corrupt", range(5))
@pytest.mark.parametrize("pair", [0, 9])
def test_one_spare_answer_finds_a_corrupt_one_and_two_name_it(
    corrupt: int, pair: int
) -> None:
    slots, all_, _ = plain_answers(1, 1, 5)
    name = slots[corrupt]
    all_[name] = all_[name].copy()
    all_[name][pair] = (int(all_[name][pair]) + 1) % P
    params = open_params(1, 1)
    with pytest.raises(ProtocolFailed, match=f"without '{name}'"):
        decode(params, slots, all_)
    four = {slot: a for slot, a in all_.items() if slot != slots[corrupt - 1]}
    with pytest.raises(ProtocolFailed, match="5 answers would show whose"):
        decode(params, slots, four)


@pytest.mark.parametrize("answers_late", [True, False])
def test_without_masks_a_round_goes_on_without_a_party(*, answers_late: bool) -> None:
    """Which reads its labels all the same. Masked answers are all needed."""
    parts = simulation.split(IRIS, Layout.lattice(4), 1)
    assert at_distances(OmniFC(n_clusters=3), parts).open.quorum == 4
    params = OmniFC(n_clusters=3, hide_segments=False)
    whole = simulation.run(params, parts.layout, parts.data, 1)
    session = at_distances(params, parts)
    assert session.open.quorum == 3
    late = session.answer("r2c1")
    session.play_round(absent=["r2c1"])
    if answers_late:
        session.memories["r2c1"], session.journals["r2c1"] = late.memory, late.journal
    session.play_round()
    results = session.final_step.results
    found = {slot: session.outcome_of(slot, results[slot], None) for slot in results}
    assert agreement(found, whole.outcomes) == 1.0


# Refused in time


def test_bits_beyond_the_declared_ranges_are_refused() -> None:
    given = OmniFC(n_clusters=2, bits=25, scaling="none", ranges="declared")
    with pytest.raises(InvalidParameters, match="at most 10"):
        given.check_dictionary([numeric_schema(["x0"], 0.0, 1e6)])


def test_the_numbers_that_a_refusal_names_do_work() -> None:
    known = catalogue.protocol("omnifc")
    known.check_params(OmniFC(n_clusters=2, segments=1, noise=2), Layout.lattice(5))
    params = OmniFC(n_clusters=2)

    def needed(n: int) -> int:
        return limits.analyst_bytes(params, n, 1)

    most = limits.most_rows(needed, params.memory_limit)
    assert needed(most) <= params.memory_limit < needed(most + 1)
    known.check_params(OmniFC(n_clusters=2, max_rows=most), Layout.lattice(3))
    with pytest.raises(InvalidParameters):
        known.check_params(OmniFC(n_clusters=2, max_rows=most + 1), Layout.lattice(3))


@pytest.mark.parametrize(
    ("name", "features"),
    [
        *((name, "embedding") for name in ALGORITHMS),
        *((name, "distance_rows") for name in [*ALGORITHMS, "nmf"] if name != "dbscan"),
    ],
)
@pytest.mark.quick(6)
def test_a_step_takes_no_more_memory_than_stated(name: str, features: Any) -> None:
    options = ALGORITHMS.get(name, {"algorithm": name})
    params = OmniFC(
        n_clusters=None if name == "dbscan" else 3,
        features=features,
        n_init=2,
        max_iter=5,
        **options,
    )

    def read(X: Any) -> tuple[Any, Any]:
        squared = pdist(X, "sqeuclidean")
        return squared, classical_scaling(squared, 4)

    assert_step_fits_memory(params, read)


@pytest.mark.parametrize("hide", [True, False])
def test_a_party_takes_no_more_memory_than_stated(*, hide: bool) -> None:
    n, blocks = 2_000, 8 << 20
    params = OmniFC(n_clusters=2, hide_segments=hide)
    X = np.random.default_rng(0).normal(size=(n, 4))
    session = at_distances(params, simulation.split(X, Layout.lattice(3), 1))
    peak = peak_bytes(lambda: session.answer("r1c1"))
    stated = limits.party_bytes(params, n, 4) - limits.party_bytes(params, 0, 4)
    assert 2 * limits.upload_bytes(params, n, 4) < peak <= stated + blocks


def test_shares_are_sent_once() -> None:
    """Two encodings of the same rows are for no honest analyst to ask for."""
    session = by_hand(
        OmniFC(n_clusters=2), simulation.split(IRIS, Layout.lattice(3), 1)
    )
    session.play_until(messages.EncodeRows)
    tasks = session.open.tasks
    session.play_round()
    for slot, task in tasks.items():
        with pytest.raises(ProtocolFailed, match="second time"):
            session.answer(slot, task)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (OmniFC(n_clusters=2, max_rows=100), "150 rows; max_rows is 100"),
        (OmniFC(n_clusters=151), "there are 150 rows"),
    ],
)
def test_a_roster_that_does_not_fit_fails_before_any_task(
    params: OmniFC, text: str
) -> None:
    parts = simulation.split(IRIS, Layout.lattice(3), 1)
    joined = simulation.build_agreement(params, parts.layout, parts.data, 1)
    with pytest.raises(ProtocolFailed, match=text):
        engine.begin_session(joined)


def test_a_value_outside_its_range_stops_its_party() -> None:
    params = OmniFC(n_clusters=2, ranges="declared", scaling="none")
    parts = simulation.split(IRIS, Layout.lattice(3), 1)
    said = within(0.0, 7.0, parts.data, parts.layout)  # one iris is longer
    with pytest.raises(InvalidData, match="x0"):
        simulation.run(params, parts.layout, parts.data, 1, dictionary=said)


def test_beyond_its_range_or_memory_a_party_sends_no_share() -> None:
    parts = simulation.split(1e6 * IRIS, Layout.lattice(3), 1)
    far = by_hand(OmniFC(n_clusters=2, bits=25, scaling="none"), parts)
    narrow = by_hand(OmniFC(n_clusters=2), parts, memory_limit=1 << 28)
    for session, error, said in (
        (far, InvalidParameters, "allow at most"),
        (narrow, GuardRefused, "'memory_limit' is 268435456, enough for 0"),
    ):
        with pytest.raises(error, match=said):
            session.play_until(messages.Compare)
        assert session.open.stage == "shares"


def by_hand(
    params: OmniFC, parts: simulation.Split, **choices: Any
) -> simulation.Session:
    layout = parts.layout
    everybody = dict.fromkeys(layout.names, choices)
    return simulation.Session(params, layout, parts.data, seed=1, choices=everybody)


def at_distances(
    params: OmniFC, parts: simulation.Split, **choices: Any
) -> simulation.Session:
    session = by_hand(params, parts, **choices)
    session.play_until(messages.Compare)
    return session
