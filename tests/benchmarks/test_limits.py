"""The limits by arithmetic, against small cases counted by hand."""

import json

import pytest

from benchmarks import limits
from benchmarks.machine import Peaks, combine
from benchmarks.peers.protocol import Job

SHAPE = limits.Shape(linear=100, head=10, layers=1, heads=1, kv_heads=1, head_dim=1)


def test_each_token_costs_its_weights_each_sampled_one_the_head_each_pair_attention():
    # 3 in, 2 out: four tokens are computed, two sampled; token i attends to i + 1 tokens
    job = Job(prompts=[[1, 2, 3]], out=2)
    assert limits.operations(SHAPE, job) == 4 * 200 + 2 * 20 + 4 * (1 + 2 + 3 + 4)


def test_what_prompts_share_is_computed_once():
    apart = Job(prompts=[[1, 2, 3], [1, 2, 4]], out=1)
    shared = Job(prompts=apart.prompts, out=1, shared=2)
    assert limits.operations(SHAPE, apart) - limits.operations(SHAPE, shared) == 2 * 200 + 4 * (1 + 2)


def test_weights_are_read_once_a_pass_and_the_cache_once_a_decoded_token():
    job = Job(prompts=[[1, 2, 3]], out=3)
    # two decoded tokens, with a context of 4 and 5 tokens of 2 values each
    assert limits.traffic_bytes(SHAPE, job, "float32") == 3 * 110 * 4 + (4 + 5) * 2 * 4
    assert limits.traffic_bytes(SHAPE, job, "int8") == 3 * 110 + (4 + 5) * 2 * 2


def test_a_shared_context_is_read_once_a_step():
    alone = Job(prompts=[[1, 2, 3]] * 2, out=2)
    shared = Job(prompts=alone.prompts, out=2, shared=2)
    saved = limits.traffic_bytes(SHAPE, alone, "float32") - limits.traffic_bytes(SHAPE, shared, "float32")
    assert saved == 2 * 2 * 4


def test_the_limit_is_the_longer_of_arithmetic_and_traffic():
    job = Job(prompts=[[1]], out=1)
    peaks = Peaks(fma_flops=1e3, bfloat16_flops=1.0, int8_ops=None, read_bytes=1e9, source="")
    found = limits.limit(SHAPE, job, "float32", peaks)
    assert found.seconds == found.compute_s == limits.operations(SHAPE, job) / 1e3
    assert found.bound == "compute"
    slow = Peaks(fma_flops=1e9, bfloat16_flops=1.0, int8_ops=None, read_bytes=1e3, source="")
    assert limits.limit(SHAPE, job, "float32", slow).bound == "memory"


def test_narrow_weights_may_use_the_fastest_arithmetic_there_is():
    peaks = Peaks(fma_flops=2.0, bfloat16_flops=1.0, int8_ops=5.0, read_bytes=1.0, source="")
    assert [peaks.flops(dtype) for dtype in limits.WEIGHT_BYTES] == [2.0, 2.0, 5.0, 5.0]


def test_peaks_are_the_best_of_both_measurements():
    torch_found = {"fma_flops": 1.0, "bfloat16_flops": 3.0, "read_bytes": 9.0}
    both = combine({"fma_flops": 2.0, "int8_ops": 4.0, "read_bytes": 8.0}, torch_found)
    assert (both.fma_flops, both.bfloat16_flops, both.int8_ops, both.read_bytes) == (2.0, 3.0, 4.0, 9.0)
    assert "lower bounds" in combine({}, torch_found).source


def test_a_shape_is_read_from_the_configuration(tmp_path):
    config = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "vocab_size": 50,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    shape = limits.shape_of(tmp_path)
    assert shape.head_dim == 2
    assert shape.linear == 3 * (8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 16)
    assert shape.head == 400


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int4"])
def test_longer_answers_never_have_a_shorter_limit(dtype):
    peaks = Peaks(fma_flops=1e3, bfloat16_flops=1.0, int8_ops=None, read_bytes=1e3, source="")
    seconds = [limits.limit(SHAPE, Job(prompts=[[1] * 9], out=n), dtype, peaks).seconds for n in range(1, 9)]
    assert seconds == sorted(seconds)
