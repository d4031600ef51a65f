"""Lengths: the distribution that was asked for, inside its cut, the same for one seed."""

import statistics

import pytest

from inference.errors import InputError
from inference.stats import percentile
from inference.workload.lengths import draw_lengths, parse_lengths
from inference.workload.prompts import generate_prompts


def drawn(text: str, n: int = 4000, seed: int = 1) -> list[int]:
    return draw_lengths(n, parse_lengths(text), seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_distributions_have_their_figures(seed: int) -> None:
    assert set(drawn("fixed:64", 5)) == {64}
    uniform = drawn("uniform:min=100,max=900", seed=seed)
    assert (min(uniform), max(uniform)) == (pytest.approx(100, abs=3), pytest.approx(900, abs=3))
    assert statistics.mean(uniform) == pytest.approx(500, rel=0.03)
    normal = drawn("normal:mean=512,sigma=64", seed=seed)
    assert statistics.mean(normal) == pytest.approx(512, rel=0.02)
    assert statistics.stdev(normal) == pytest.approx(64, rel=0.06)
    by_percentiles = sorted(drawn("lognormal:p50=400,p95=1800", seed=seed))
    assert percentile(by_percentiles, 50) == pytest.approx(400, rel=0.07)
    assert percentile(by_percentiles, 95) == pytest.approx(1800, rel=0.12)
    by_moments = drawn("lognormal:mean=512,sigma=300", seed=seed)
    assert statistics.mean(by_moments) == pytest.approx(512, rel=0.05)
    assert statistics.stdev(by_moments) == pytest.approx(300, rel=0.15)
    assert drawn("normal:mean=9,sigma=3", seed=seed) == drawn("normal:mean=9,sigma=3", seed=seed)


def test_the_cut_leaves_no_heap_at_its_ends() -> None:
    found = drawn("lognormal:p50=400,p95=1800,min=100,max=1000")
    assert min(found) >= 100
    assert max(found) <= 1000
    assert found.count(1000) < 20
    assert min(drawn("normal:mean=2,sigma=50")) >= 1


def test_lengths_of_a_trace_are_taken_in_its_order() -> None:
    assert draw_lengths(3, parse_lengths("trace"), values=[5, 9]) == [5, 9, 5]
    with pytest.raises(InputError, match="need a workload file"):
        draw_lengths(3, parse_lengths("trace"))


@pytest.mark.parametrize(
    "wrong",
    ["", "512", "fixed:", "fixed:0", "uniform:min=5", "uniform:min=9,max=5", "normal:mean=5", "trace:1",
     "lognormal:p50=9,p95=5", "lognormal:p50=9,p95=90,max=5", "normal:mean=1,sigma=1,p50=2",
     "normal:mean=nan,sigma=1", "normal:mean=1,mean=2,sigma=1", "zipf:a=1"],
)  # fmt: skip
def test_what_is_no_distribution_is_refused_with_the_form(wrong: str) -> None:
    with pytest.raises(InputError, match="lengths must look like"):
        parse_lengths(wrong)


def test_prompts_of_many_lengths_with_a_share_of_prefixes() -> None:
    lengths = [60 + i for i in range(20)]
    prompts = generate_prompts(
        20, lengths, shared_prefix_tokens=30, prefixes=2, prefix_share=0.5, tokenize=str.split  # type: ignore[arg-type]
    )  # fmt: skip
    assert [len(prompt.split()) for prompt in prompts] == lengths
    heads = [" ".join(prompt.split()[:30]) for prompt in prompts]
    shared = [head for head in heads if heads.count(head) > 1]
    assert len(shared) == 10
    assert len(set(shared)) == 2
