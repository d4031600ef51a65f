"""The bytes that one token stands for, whatever kind of tokenizer it comes from."""

import re
from typing import Any

from tokenizers import decoders, pre_tokenizers

BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")
SPACE = "▁"  # how SentencePiece writes a space


def _byte_letters() -> dict[str, int]:
    """The letters by which byte-level tokenizers write bytes: most as themselves, the rest from U+0100 on."""
    letters = {letter: ord(letter) for letter in pre_tokenizers.ByteLevel.alphabet() if ord(letter) < 256}
    others = [byte for byte in range(256) if chr(byte) not in letters]
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}


#: letters to bytes as characters; what is no such letter becomes a character that is no byte
AS_BYTES = {number: 0xFFFF for number in range(256)}
AS_BYTES |= {ord(letter): byte for letter, byte in _byte_letters().items()}


class TokenBytes:
    """Bytes of token ids, worked out once for each id that occurs.

    `joined` says that the text of ids is the text of their bytes one after another, so that they can be
    decoded one by one. That holds for byte-level tokenizers (GPT-2, Llama 3, Qwen, SmolLM …) and not for
    SentencePiece ones, which treat the first space and runs of single bytes by rules of their own.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
        self._known: dict[int, bytes] = {}
        self.ascii: dict[int, str] = {}  # what the tokens add that are whole ASCII characters, as they occur
        self._special = {
            number for number, token in self._added().items() if getattr(token, "special", False)
        }
        self.joined = isinstance(getattr(self._tokenizer, "decoder", None), decoders.ByteLevel)

    def shown(self, token_id: int) -> bytes:
        """What the token adds to a text; nothing for special tokens and unknown ids."""
        found = b"" if token_id in self._special else self.of(token_id)
        if found.isascii():
            self.ascii[token_id] = found.decode("ascii")
        return found

    def of(self, token_id: int) -> bytes:
        """What the token stands for; a special token for its own name."""
        found = self._known.get(token_id)
        if found is None:
            found = self._known[token_id] = self._work_out(token_id)
        return found

    def _work_out(self, token_id: int) -> bytes:
        token = self._tokenizer.id_to_token(token_id)
        if token is None:
            return b""
        if self.joined:
            try:
                return bytes(token.translate(AS_BYTES).encode("latin-1"))
            except UnicodeEncodeError:  # an added token, written as it is
                return bytes(token.encode())
        byte = BYTE_TOKEN.fullmatch(token)
        return bytes([int(byte[1], 16)]) if byte else bytes(token.replace(SPACE, " ").encode())

    def _added(self) -> dict[int, Any]:
        try:
            return dict(self._tokenizer.get_added_tokens_decoder())
        except AttributeError:
            return {}
