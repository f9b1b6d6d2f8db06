"""The randomness of a trial: the same each time, and all of its bits used."""

import copy
import pickle
import random
import threading

import numpy as np
import pytest
from scipy import stats

from privselect.errors import ParameterError
from privselect.tuning.randomness import Randomness, Stream, derive_key, seeded_globals

SEED = bytes(range(32))
FALSE_ALARM = 1e-6  # of each statistical test here; the seeds are fixed, so that a run that passed passes again


def flipped(seed, bit):
    changed = bytearray(seed)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def all_of(randomness):
    return (
        randomness.numpy().integers(2**63, size=4).tolist(),
        [randomness.python().getrandbits(128)],
        [randomness.stream().getrandbits(256)],
        [randomness.stream("another").getrandbits(256)],
        [randomness.integer()],
        [randomness.integer(4096)],
    )


def test_a_trial_that_is_run_again_gets_the_same_generators():
    assert all_of(Randomness(SEED)) == all_of(Randomness(SEED))
    mine, other = Randomness(SEED), Randomness(SEED)
    assert [mine.numpy().normal() for _ in range(3)] == [other.numpy().normal() for _ in range(3)]


def test_a_generator_that_is_asked_for_twice_is_another_one():
    """Noise that is drawn twice from one generator cancels out in a difference."""
    randomness = Randomness(SEED)
    drawn = [all_of(randomness) for _ in range(4)]
    for generators in zip(*drawn, strict=True):
        assert len({repr(numbers) for numbers in generators}) == 4
    assert len({randomness.stream("a").getrandbits(128) for _ in range(4)} | {randomness.stream("b").getrandbits(128)}) == 5


@pytest.mark.parametrize("bit", [0, 63, 64, 127, 128, 200, 255])
def test_one_bit_of_the_seed_changes_every_generator(bit):
    for mine, other in zip(all_of(Randomness(SEED)), all_of(Randomness(flipped(SEED, bit))), strict=True):
        assert mine != other


def test_generators_of_different_names_have_nothing_in_common():
    randomness = Randomness(SEED)
    names = ["stream", "numpy", "python", "torch", "score", "integer128", "a name of more than sixteen letters", "", "größe"]
    drawn = {randomness.stream(name).getrandbits(256) for name in names}
    assert len(drawn) == len(names)
    assert not drawn & {int.from_bytes(derive_key(SEED, name), "big") for name in ("numpy", "python", "torch")}
    assert randomness.integer() not in {number >> 128 for number in drawn} | {number % 2**128 for number in drawn}


def test_numpy_and_python_are_seeded_with_256_bits(monkeypatch):
    given = []
    sequence = np.random.SeedSequence
    monkeypatch.setattr(np.random, "SeedSequence", lambda entropy, **rest: given.append(entropy) or sequence(entropy, **rest))
    for number in range(20):
        Randomness(derive_key(SEED, "test", number)).numpy()
    assert max(given).bit_length() > 250


def test_a_short_seed_is_refused_unless_it_is_declared():
    with pytest.raises(ParameterError, match=r"`bits` must be at least 128, got 32.*seed_bits=32"):
        Randomness(SEED).integer(32)
    assert Randomness(SEED, seed_bits=32).integer(32) < 2**32
    assert Randomness(SEED, seed_bits=32).integer(64) < 2**64
    with pytest.raises(ParameterError, match="`bits` must be at least 32"):
        Randomness(SEED, seed_bits=32).integer(31)


@pytest.mark.parametrize("seed", [bytes(15), b"", "text" * 10, 7])
def test_what_is_no_seed_is_refused_without_being_shown(seed):
    with pytest.raises(ParameterError, match="`seed` must be at least 16 bytes") as caught:
        Randomness(seed)
    assert "texttext" not in str(caught.value)


def test_a_stream_is_uniform_however_it_is_cut():
    whole = Stream(SEED).getrandbits(3000)
    stream, at, pieces = Stream(SEED), 0, 0
    for size in (1, 0, 53, 7, 512, 511, 513, 1, 64, 1024):
        pieces |= stream.getrandbits(size) << at
        at += size
    assert pieces == whole % 2**at
    # A chi-square of 20000 bytes, false alarm 1e-6.
    counts = np.bincount(np.frombuffer(Stream(SEED).getrandbits(160_000).to_bytes(20_000, "big"), dtype=np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.opacus
def test_the_whole_state_of_a_torch_generator_is_drawn():
    torch = pytest.importorskip("torch")
    mine, other = Randomness(SEED).torch(), Randomness(flipped(SEED, 255)).torch()
    assert torch.equal(mine.get_state(), Randomness(SEED).torch().get_state())
    words = [generator.get_state().numpy()[24 : 24 + 8 * 624].view("<u8") for generator in (mine, other)]
    assert np.mean(words[0] != words[1]) > 0.99
    assert words[0].max() < 2**32
    # manual_seed keeps 32 bits or 64: no seed of that kind gives this state.
    seeded = torch.Generator()
    seeded.manual_seed(Randomness(SEED).integer() % 2**63)
    assert not torch.equal(seeded.get_state(), mine.get_state())
    assert not torch.equal(torch.rand(10, generator=mine), torch.rand(10, generator=other))


@pytest.mark.opacus
def test_a_torch_generator_draws_normal_and_uniform_numbers():
    # Kolmogorov-Smirnov of 20000 numbers each, false alarm 1e-6.
    torch = pytest.importorskip("torch")
    generator = Randomness(SEED).torch()
    normal = torch.normal(0.0, 1.0, (20_000,), generator=generator).numpy()
    uniform = torch.rand(20_000, generator=generator).numpy()
    assert stats.kstest(normal, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM
    # Mean and variance within 5 standard errors, which are 1/sqrt(n) and sqrt(2/n); false alarm 1.2e-6.
    assert abs(normal.mean()) < 5 / 20_000**0.5
    assert abs(normal.var() - 1.0) < 5 * (2 / 20_000) ** 0.5


# -- generators of the process --------------------------------------------------------------------------------------------------------


def from_globals():
    return [random.random(), float(np.random.normal()), float(np.random.uniform())]  # noqa: NPY002, S311 - these very generators


def test_the_generators_of_the_process_are_the_trials_own_and_come_back():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - as above
    np.random.normal()  # noqa: NPY002 - leaves half of a pair of normals behind, which is part of the state
    before, states = from_globals(), []
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - as above
    np.random.normal()  # noqa: NPY002 - as above
    for seed in (SEED, SEED, bytes(32)):
        with seeded_globals(Randomness(seed)):
            states.append(from_globals())
    assert states[0] == states[1] != states[2]
    assert from_globals() == before


def test_the_generators_of_the_process_come_back_after_an_error():
    random.seed(2)
    before = random.getstate()
    with pytest.raises(ValueError, match="of the trial"), seeded_globals(Randomness(SEED)):
        raise ValueError("of the trial")
    assert random.getstate() == before


def test_every_word_of_the_older_generator_is_drawn():
    words = Randomness(SEED).random_state().get_state()[1]
    others = Randomness(flipped(SEED, 200)).random_state().get_state()[1]
    assert len(set(words.tolist())) == 624
    assert not np.any(words == others)
    assert Randomness(SEED).random_state().normal() != Randomness(SEED).numpy().normal()


def test_trials_in_threads_of_one_process_never_draw_from_what_was_there_before():
    np.random.seed(3)  # noqa: NPY002 - this very generator
    known, drawn = from_globals()[1], {}
    np.random.seed(3)  # noqa: NPY002 - as above
    inside, go_on = threading.Event(), threading.Event()

    def trial(name, seed):
        with seeded_globals(Randomness(seed)):
            inside.set()
            go_on.wait(0.5)
            drawn[name] = from_globals()

    one, other = (threading.Thread(target=trial, args=(name, bytes([number]) * 32)) for number, name in enumerate("ab"))
    one.start()
    inside.wait(10)
    other.start()
    one.join()
    other.join()
    for number, name in enumerate("ab"):
        with seeded_globals(Randomness(bytes([number]) * 32)):
            assert drawn[name] == from_globals()
    assert known not in drawn["a"] + drawn["b"]


@pytest.mark.opacus  # which torch comes with
def test_generators_on_every_device_are_seeded_and_keep_no_seed_of_the_trial(monkeypatch):
    import torch

    for module in (torch.cuda, torch.xpu):
        seeds = []
        monkeypatch.setattr(module, "manual_seed_all", seeds.append)
        for seed in (SEED, SEED, bytes(32)):
            with seeded_globals(Randomness(seed)):
                pass
        assert len(seeds) == 6  # of the trial, then of the system
        assert seeds[0] == seeds[2] != seeds[4]
        assert len(set(seeds)) == 5


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_randomness_is_not_copied(copied):
    with pytest.raises(ParameterError, match="two copies give the same noise"):
        copied(Randomness(SEED))
