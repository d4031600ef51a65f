"""Blocks: given, shared, found again, evicted oldest first, and never lost."""

import pytest

from inference.engine.detokenise import Detokeniser, WindowJoiner
from inference.engine.kv import BlockManager
from inference.engine.sequence import Sequence
from inference.requests import GenerationRequest


def sequence(tokens: list[int], namespace: str = "") -> Sequence:
    return Sequence(
        handle=1,
        request=GenerationRequest(id="r", namespace=namespace),
        tokens=list(tokens),
        prompt_length=len(tokens),
        detokeniser=Detokeniser(WindowJoiner(lambda _: "")),
        queued_ns=0,
    )


def computed(manager: BlockManager, tokens: list[int], namespace: str = "") -> Sequence:
    """A sequence that was admitted and wholly computed."""
    one = sequence(tokens, namespace)
    assert manager.admit(one) is not None
    one.num_computed = len(tokens)
    manager.register(one)
    return one


def test_a_prefix_is_shared_while_it_is_held_and_after_it_was_released() -> None:
    manager = BlockManager(8, 4)
    first = computed(manager, list(range(10)))
    second = sequence([*range(8), 50, 51])
    assert manager.admit(second) == (8, None)
    assert second.blocks[:2] == first.blocks[:2]
    manager.check([first, second])
    manager.release(first)
    manager.release(second)
    third = sequence(list(range(9)))
    assert manager.admit(third) == (8, None)
    manager.release(third)
    manager.check()
    assert manager.held == 0


def test_a_fully_cached_prompt_leaves_one_token_and_copies_its_last_block() -> None:
    manager = BlockManager(8, 4)
    first = computed(manager, list(range(8)))
    second = sequence(list(range(8)))
    admission = manager.admit(second)
    assert admission is not None
    cached, copy = admission
    assert cached == 7
    assert copy == (first.blocks[1], second.blocks[1])
    assert second.blocks[0] == first.blocks[0]
    assert second.blocks[1] != first.blocks[1]  # it is written again: nobody else may see that
    manager.check([first, second])


def test_without_room_for_the_copy_the_last_block_is_computed_again() -> None:
    manager = BlockManager(2, 4)
    manager.release(computed(manager, list(range(8))))
    second = sequence(list(range(8)))
    assert manager.admit(second) == (4, None)
    manager.check([second])


def test_namespaces_share_nothing() -> None:
    manager = BlockManager(8, 4)
    manager.release(computed(manager, list(range(8)), "tenant-a"))
    other = sequence(list(range(9)), "tenant-b")
    assert manager.admit(other) == (0, None)


def test_the_same_block_after_another_prefix_is_no_hit() -> None:
    manager = BlockManager(8, 4)
    manager.release(computed(manager, [1, 2, 3, 4, 5, 6, 7, 8]))
    other = sequence([9, 9, 9, 9, 5, 6, 7, 8, 0])
    assert manager.admit(other) == (0, None)


def test_a_hash_collision_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    class Constant:
        def update(self, _: bytes) -> None: ...

        def digest(self) -> bytes:
            return b"same"

    monkeypatch.setattr("inference.engine.kv.hashlib.blake2b", lambda *_, **__: Constant())
    manager = BlockManager(8, 4)
    manager.release(computed(manager, [1, 2, 3, 4, 5]))
    other = sequence([5, 6, 7, 8, 9])
    assert manager.admit(other) == (0, None)


def test_unused_blocks_go_first_then_the_content_released_longest_ago() -> None:
    manager = BlockManager(4, 2)
    old, new = computed(manager, [1, 2]), computed(manager, [3, 4])
    manager.release(old)
    manager.release(new)
    big = sequence([7, 7, 8, 8, 9, 9])  # two unused blocks and the older content
    assert manager.admit(big) is not None
    manager.release(big)
    assert manager.admit(sequence([3, 4, 5])) == (2, None)
    assert manager.admit(sequence([1, 2, 5])) == (0, None)


def test_admission_leaves_the_reserve_of_those_who_run() -> None:
    manager = BlockManager(4, 4)
    assert manager.admit(sequence(list(range(12))), reserve=2) is None
    assert manager.available == 4
    assert manager.admit(sequence(list(range(12))), reserve=1) is not None


def test_growth_ends_with_the_pool() -> None:
    manager = BlockManager(2, 2, prefix_cache=False)
    one = computed(manager, [1, 2])
    one.tokens += [3]
    assert manager.grow(one)
    one.tokens += [4, 5]
    assert not manager.grow(one)
    manager.check([one])


def test_a_reset_cache_finds_nothing_and_keeps_what_is_held() -> None:
    manager = BlockManager(8, 4)
    one = computed(manager, list(range(9)))
    manager.reset_cache()
    assert manager.admit(sequence(list(range(9)))) == (0, None)
    assert manager.cached == 0
    manager.release(one)


def test_a_second_release_of_a_block_is_an_error() -> None:
    manager = BlockManager(4, 4)
    one = computed(manager, [1, 2, 3])
    blocks = one.blocks
    manager.release(one)
    one.blocks = blocks
    with pytest.raises(AssertionError, match="released twice"):
        manager.release(one)


def test_a_lost_block_is_noticed() -> None:
    manager = BlockManager(4, 4)
    computed(manager, [1, 2, 3])
    with pytest.raises(AssertionError, match="held by nobody"):
        manager.check()
