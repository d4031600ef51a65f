"""What no database could store becomes the character that stands for none."""

import json

from pocs.common.storing import storable


def test_no_nul_and_no_half_of_a_pair_is_left() -> None:
    value = {"a\x00": ["x\x00y", {"b": "\ud83d"}, 1, None, True], "c": ("中😀",)}
    assert storable(value) == {"a\ufffd": ["x\ufffdy", {"b": "\ufffd"}, 1, None, True], "c": ["中😀"]}
    json.dumps(storable(value), ensure_ascii=False).encode()
