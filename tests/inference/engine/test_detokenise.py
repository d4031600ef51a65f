"""Streamed text: whole characters, spaces kept, and nothing of a stop string."""

import random
from collections.abc import Callable

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from inference.engine.detokenise import REPLACEMENT, ByteJoiner, Detokeniser, Joiner, WindowJoiner
from inference.engine.token_bytes import TokenBytes
from tests.inference.engine.conftest import SPECIAL, byte_tokenizer

TEXTS = ["你好，世界", "naïve ďábel", "🎉👩‍👩‍👧 family", "  two  spaces ", "line\n\nend", "١٢٣ हिन्दी"]


def stream(detokeniser: Detokeniser, ids: list[int]) -> list[str]:
    pieces = [detokeniser.add(token_id) for token_id in ids if not detokeniser.stopped]
    return [*pieces, detokeniser.flush()]


def by_window(tokenizer: Tokenizer) -> Joiner:
    return WindowJoiner(tokenizer.decode)


def by_bytes(tokenizer: Tokenizer) -> Joiner:
    return ByteJoiner(TokenBytes(tokenizer))


@pytest.mark.parametrize("joiner", [by_window, by_bytes])
@pytest.mark.parametrize("text", TEXTS)
def test_case_1_bytes_become_whole_characters(text: str, joiner: Callable[[Tokenizer], Joiner]) -> None:
    backend = byte_tokenizer().backend_tokenizer
    pieces = stream(Detokeniser(joiner(backend)), backend.encode(text).ids)
    assert "".join(pieces) == text
    assert not any(REPLACEMENT in piece for piece in pieces)


@pytest.mark.parametrize("joiner", [by_window, by_bytes])
def test_case_1_random_bytes_join_to_the_text_of_all_ids(joiner: Callable[[Tokenizer], Joiner]) -> None:
    backend = byte_tokenizer().backend_tokenizer
    rng = random.Random(7)
    for _ in range(200):
        ids = [rng.randrange(len(SPECIAL) + 256) for _ in range(rng.randrange(1, 40))]
        assert "".join(stream(Detokeniser(joiner(backend)), ids)) == backend.decode(ids)


def sentencepiece() -> Tokenizer:
    """Pieces with ▁ for spaces and bytes as fallback, decoded as Llama 2 does."""
    pieces = ["<unk>", *[f"<0x{byte:02X}>" for byte in range(256)], "▁", "▁Hello", "▁wor", "ld", "▁a", "!"]
    tokenizer = Tokenizer(
        models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=[], byte_fallback=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def test_case_2_sentencepiece_keeps_the_spaces_between_pieces() -> None:
    tokenizer = sentencepiece()
    ids = [tokenizer.token_to_id(piece) for piece in ("▁Hello", "▁wor", "ld", "▁", "▁a", "!")]
    pieces = stream(Detokeniser(WindowJoiner(tokenizer.decode)), ids)
    assert pieces[:4] == ["Hello", " wor", "ld", " "]
    assert "".join(pieces) == tokenizer.decode(ids)


def test_byte_fallback_joins_to_the_text_of_all_ids() -> None:
    tokenizer = sentencepiece()
    rng = random.Random(11)
    emoji = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in "🎉你".encode()]
    byte_ids = frozenset(range(1, 257))
    pieces = stream(
        Detokeniser(WindowJoiner(tokenizer.decode, byte_ids)), [tokenizer.token_to_id("▁a"), *emoji]
    )
    assert "".join(pieces) == "a🎉你"
    assert not any(REPLACEMENT in piece for piece in pieces)
    for _ in range(200):
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(1, 30))]
        pieces = stream(Detokeniser(WindowJoiner(tokenizer.decode, byte_ids)), ids)
        assert "".join(pieces) == tokenizer.decode(ids)


def letters(ids: list[int]) -> str:
    return "".join(PIECES[number] for number in ids)


PIECES = ["abc", "DEF", "G", "HI", "J", "x", "DE"]


def test_case_3_nothing_of_a_stop_string_is_given_out() -> None:
    detokeniser = Detokeniser(WindowJoiner(letters), ("DEFGHIJ",))
    given = [detokeniser.add(token_id) for token_id in (0, 1, 2, 3)]
    assert given == ["abc", "", "", ""]
    assert detokeniser.add(4) == ""
    assert detokeniser.stopped
    assert detokeniser.flush() == ""


def test_what_was_no_stop_string_after_all_is_given_out() -> None:
    detokeniser = Detokeniser(WindowJoiner(letters), ("DEFGHIJ",))
    assert [detokeniser.add(token_id) for token_id in (1, 2, 5)] == ["", "", "DEFGx"]
    assert [detokeniser.add(token_id) for token_id in (6, 1)] == ["", "DE"]  # DEDEF: it may begin again
    assert detokeniser.flush() == "DEF"
    assert not detokeniser.stopped


def test_the_earliest_of_several_stop_strings_counts() -> None:
    detokeniser = Detokeniser(WindowJoiner(letters), ("HI", "G"))
    assert detokeniser.add(1) == "DEF"
    assert detokeniser.add(2) == ""
    assert detokeniser.stopped


def test_stop_strings_do_not_count_before_they_may() -> None:
    detokeniser = Detokeniser(WindowJoiner(letters), ("G",))
    assert detokeniser.add(2, may_stop=False) == "G"
    assert not detokeniser.stopped
    assert detokeniser.add(2) == ""
    assert detokeniser.stopped


def test_case_3_a_stop_string_in_the_last_bytes_is_found_at_the_end() -> None:
    tokenizer = sentencepiece()
    joiner = WindowJoiner(tokenizer.decode, frozenset(range(1, 257)))
    detokeniser = Detokeniser(joiner, ("END",))
    given = [detokeniser.add(tokenizer.token_to_id(f"<0x{byte:02X}>")) for byte in b"an END here"]
    assert not any(given)  # the run of bytes is not over
    assert detokeniser.flush() == "an "
    assert detokeniser.stopped
