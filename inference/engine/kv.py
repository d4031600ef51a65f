"""The paged key-value cache: who holds which block, which can be found again, and the memory itself."""

import hashlib
import math
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

import numpy
import torch

from inference.engine.sequence import Sequence, block_table


class Content(NamedTuple):
    """What a cached block holds; compared on every hit, so that a hash collision is a miss."""

    namespace: str
    parent: bytes
    tokens: tuple[int, ...]


class BlockManager:
    """Hands out blocks and finds prefixes again.

    Every block is in one of three states: free (in the queue), cached (in the queue, and its content can
    be found) or held (by one or more sequences). The queue doubles as the LRU of the cached blocks: blocks
    without content are taken first, then the content that was released longest ago.
    """

    def __init__(self, blocks: int, block_tokens: int, *, prefix_cache: bool = True) -> None:
        self.total = blocks
        self.block_tokens = block_tokens
        self.prefix_cache = prefix_cache
        self.query_tokens = 0  # prompt tokens asked for at first admissions
        self.hit_tokens = 0  # of these, served from the cache
        self._queue: OrderedDict[int, None] = OrderedDict.fromkeys(range(blocks))
        self._holders = [0] * blocks
        self._by_hash: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}
        self._content: dict[int, Content] = {}

    @property
    def available(self) -> int:
        return len(self._queue)

    @property
    def held(self) -> int:
        return self.total - len(self._queue)

    @property
    def cached(self) -> int:
        """Blocks in the queue whose content can still be found."""
        return sum(block in self._queue for block in self._hash_of)

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    # -- giving and taking ----------------------------------------------------------------------------

    def admit(self, sequence: Sequence, *, reserve: int = 0) -> tuple[int, tuple[int, int] | None] | None:
        """Give a sequence the blocks of all its tokens: (cached tokens, block copy to make) or None.

        At least one token is left to compute. Where the cache holds every token, the last block is copied
        (source, destination) rather than shared, since its last position is written again. `reserve`
        blocks stay in the queue for those who are already in the batch.
        """
        assert not sequence.blocks
        found = self._find(sequence)
        if found and len(found) * self.block_tokens == sequence.num_tokens:
            given = self._give(sequence, found[:-1], reserve, keep=found[-1])
            if given:
                return sequence.num_tokens - 1, (found[-1], sequence.blocks[len(found) - 1])
            found = found[:-1]
        if self._give(sequence, found, reserve):
            return len(found) * self.block_tokens, None
        return None

    def grow(self, sequence: Sequence) -> bool:
        """Make room for all tokens of a sequence in the batch; False when there is no block left."""
        missing = self.blocks_for(len(sequence.tokens)) - len(sequence.blocks)
        if missing <= 0:
            return True
        if missing > len(self._queue):
            return False
        for _ in range(missing):
            sequence.blocks.append(self._take())
        return True

    def grow_ahead(self, sequence: Sequence, tokens: int, *, reserve: int = 0) -> int:
        """Make room for up to so many tokens behind all known ones; how many have it.

        `reserve` blocks stay in the queue: what is only guessed must cost nobody a place.
        """
        room = len(sequence.blocks) * self.block_tokens - sequence.num_tokens
        while room < tokens and len(self._queue) > reserve:
            sequence.blocks.append(self._take())
            room += self.block_tokens
        return min(tokens, room)

    def release(self, sequence: Sequence) -> None:
        """Take all blocks back; their content stays findable until someone needs the memory."""
        for block in reversed(sequence.blocks):  # the tail of a prefix is the first to be evicted
            if self._holders[block] < 1:
                raise AssertionError(f"block {block} is released twice")
            self._holders[block] -= 1
            if self._holders[block] == 0:
                self._queue[block] = None
                self._queue.move_to_end(block, last=block in self._hash_of)
        sequence.blocks = block_table()
        sequence.num_registered = 0

    def register(self, sequence: Sequence) -> None:
        """Offer the blocks that are now fully computed to later requests of the same namespace."""
        if not self.prefix_cache:
            return
        full = sequence.num_computed // self.block_tokens
        if full <= sequence.num_registered:
            return
        self._hash(sequence, full)
        for index in range(sequence.num_registered, full):
            digest, block = sequence.block_hashes[index], sequence.blocks[index]
            if digest not in self._by_hash and block not in self._hash_of:
                self._by_hash[digest] = block
                self._hash_of[block] = digest
                self._content[block] = self._content_at(sequence, index)
        sequence.num_registered = full

    def reset_cache(self) -> None:
        """Forget every content; blocks in use stay with their holders."""
        self._by_hash.clear()
        self._hash_of.clear()
        self._content.clear()

    # -- checks ---------------------------------------------------------------------------------------

    def check(self, sequences: Iterable[Sequence] = ()) -> None:
        """Raise AssertionError unless free + cached + held = all and every hold has its holder."""
        holders = [0] * self.total
        for sequence in sequences:
            for block in sequence.blocks:
                holders[block] += 1
        assert holders == self._holders, "blocks are held by nobody, or by someone who is gone"
        in_queue = set(self._queue)
        assert all((count == 0) == (block in in_queue) for block, count in enumerate(holders)), (
            "a block is both free and held, or neither"
        )
        assert self._hash_of.keys() == self._content.keys(), "cached blocks without content"
        assert {self._by_hash[digest] for digest in self._hash_of.values()} == self._hash_of.keys(), (
            "two blocks claim one content"
        )

    # -- inside ---------------------------------------------------------------------------------------

    def _give(self, sequence: Sequence, shared: list[int], reserve: int, keep: int | None = None) -> bool:
        fresh = self.blocks_for(sequence.num_tokens) - len(shared)
        spoken_for = [block for block in (*shared, keep) if block is not None and block in self._queue]
        if fresh + reserve > len(self._queue) - len(spoken_for):
            return False
        for block in shared:
            self._queue.pop(block, None)
            self._holders[block] += 1
        if keep is not None and keep in self._queue:
            self._queue.move_to_end(keep)  # it is read once more: the freshest of the cached
        sequence.blocks = block_table((*shared, *(self._take() for _ in range(fresh))))
        sequence.num_registered = len(shared)
        return True

    def _take(self) -> int:
        block, _ = self._queue.popitem(last=False)
        digest = self._hash_of.pop(block, None)
        if digest is not None:
            del self._by_hash[digest], self._content[block]
        self._holders[block] = 1
        return block

    def _find(self, sequence: Sequence) -> list[int]:
        """The longest chain of cached blocks with the sequence's first tokens."""
        if not self.prefix_cache:
            return []
        full = sequence.num_tokens // self.block_tokens
        self._hash(sequence, full)
        found: list[int] = []
        for index in range(full):
            block = self._by_hash.get(sequence.block_hashes[index])
            if block is None or self._content[block] != self._content_at(sequence, index):
                break
            found.append(block)
        return found

    def _hash(self, sequence: Sequence, full: int) -> None:
        """Extend the chain of hashes: each covers the namespace, the hash before it and its tokens."""
        for index in range(len(sequence.block_hashes), full):
            content = self._content_at(sequence, index)
            digest = hashlib.blake2b(content.parent, digest_size=16)
            digest.update(content.namespace.encode())
            digest.update(array("q", content.tokens).tobytes())
            sequence.block_hashes.append(digest.digest())

    def _content_at(self, sequence: Sequence, index: int) -> Content:
        start = index * self.block_tokens
        parent = sequence.block_hashes[index - 1] if index else b""
        tokens = tuple(sequence.tokens[start : start + self.block_tokens])
        return Content(sequence.request.namespace, parent, tokens)


class KVPool:
    """The memory of the cache: per layer a key and a value tensor `[Hkv, slots, D]`.

    Allocated from the shapes that the model's first forward pass shows, so that no configuration is
    guessed. Slot `block · block_tokens + offset` holds one token; zeros, since padding reads what was
    never written, and the pages are only resident once they are touched.
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.blocks = 0
        self.layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def allocate(
        self,
        blocks: int,
        shapes: dict[int, tuple[int, int, int]],
        dtype: torch.dtype,
        device: torch.device | None = None,
        *,
        spare: bool = False,
    ) -> None:
        """`shapes`: layer → (heads, key dimension, value dimension).

        With `spare` there is one block more, number `blocks`, which is nobody's: steps recorded for a fixed
        number of rows compute the rows there that they have too many.
        """
        self.blocks = blocks
        on_gpu = device is not None and device.type != "cpu"
        slots = (blocks + spare) * self.block_tokens

        def zeros(heads: int, dim: int) -> torch.Tensor:
            shape = (heads, slots, dim)
            return torch.zeros(shape, dtype=dtype, device=device) if on_gpu else _zeros(shape, dtype)

        self.layers = {
            layer: (zeros(heads, key_dim), zeros(heads, value_dim))
            for layer, (heads, key_dim, value_dim) in shapes.items()
        }

    def store(self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """Write keys and values `[Hkv, T, D]` of T packed tokens into their slots `[T]`."""
        keys, values = self.layers[layer]
        keys.index_copy_(1, slots, key)
        values.index_copy_(1, slots, value)

    def copy_block(self, source: int, destination: int) -> None:
        size = self.block_tokens
        for tensors in self.layers.values():
            for tensor in tensors:
                tensor[:, destination * size : (destination + 1) * size] = tensor[
                    :, source * size : (source + 1) * size
                ]

    @property
    def size_bytes(self) -> int:
        return sum(tensor.nbytes for tensors in self.layers.values() for tensor in tensors)


def _zeros(shape: tuple[int, int, int], dtype: torch.dtype) -> torch.Tensor:
    """Zeros whose pages the kernel hands out at the first touch; torch.zeros writes them all at once."""
    size_bytes = math.prod(shape) * dtype.itemsize
    return torch.from_numpy(numpy.zeros(size_bytes, dtype=numpy.uint8)).view(dtype).view(shape)


def bytes_per_token(shapes: dict[int, tuple[int, int, int]], dtype: torch.dtype) -> int:
    return sum(heads * (key + value) for heads, key, value in shapes.values()) * dtype.itemsize
