"""What is personal is taken out, in all its spellings, and nothing else."""

import random

import pytest

from inference.workload.redaction import MARKS, Redactor, is_bank_card, is_id_card, redact

WIDE = str.maketrans({chr(0x21 + i): chr(0xFF01 + i) for i in range(94)} | {" ": "\u3000"})

PERSONAL = [
    ("phone", "13812345678"),
    ("phone", "138-1234-5678"),
    ("phone", "138 1234 5678"),
    ("phone", "+86 13812345678"),
    ("phone", "8613812345678"),
    ("phone", "(+86)13812345678"),
    ("phone", "0086-138-1234-5678"),
    ("phone", "010-65123456"),
    ("phone", "(021) 6512 3456"),
    ("phone", "0512-65123456-801"),
    ("phone", "02165123456"),
    ("phone", "400-820-8820"),
    ("phone", "+1 (415) 555-2671"),
    ("phone", "+442079460958"),
    ("phone", "0044 20 7946 0958"),
    ("phone", "+49 30 901820"),
    ("phone", "415-555-2671"),
    ("email", "a.b+c@x-y.co.uk"),
    ("email", "zhang_san@mail.corp.cn"),
    ("id_card", "11010519491231002X"),
    ("id_card", "11010519491231002x"),
    ("id_card", "110105 19491231 002X"),
    ("id_card", "440308199901101512"),
    ("bank_card", "4111 1111 1111 1111"),
    ("bank_card", "4111-1111-1111-1111"),
    ("bank_card", "5500005555555559"),
    ("bank_card", "378282246310005"),
    ("bank_card", "6222021234567890128"),
]

HARMLESS = [
    "订单20231116181703979960",
    "order 100023456789",
    "单号 2023-11-16-000123",
    "2023-11-16 18:17:46.6805900",
    "2023-11-16T10:00:00+08:00",
    "20231116",
    "1764500000.25",
    "1764500000250",
    "a3f13812345678bc",
    "0x13812345678",
    "sha256:4111111111111111deadbeef",
    "550e8400-e29b-41d4-a716-446655440000",
    "4111-1111-1111-1111-deadbeef",
    "3.13812345678",
    "113812345678",
    "138123456789",
    "11010519491231002 1",
    "110105194912310021",  # wrong check digit
    "110105194913310020",  # no such month
    "4111111111111112",  # wrong check digit
    "7111111111111114",  # nobody issues these
    "192.168.100.100:8080",
    "ISBN 978-7-111-54742-6",
    "v1.38.1234.5678",
    "user@localhost",
    "价格138元，共1234件",
    "pip install x@1.2",
    "ABC13812345678",
    "13812345678_1",
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("kind", "personal"), PERSONAL)
def test_personal_numbers_and_addresses_are_taken_out(kind: str, personal: str, wide: bool) -> None:
    written = personal.translate(WIDE) if wide else personal
    for around in ("{}", "联系{}谢谢。", "call {}, please", "“{}”", "\n{}\n", "号码：{}；"):
        redactor = Redactor()
        assert redactor.text(around.format(written)) == around.format(MARKS[kind])
        assert redactor.counts == {kind: 1}


@pytest.mark.parametrize("harmless", HARMLESS)
def test_what_is_not_personal_stays(harmless: str) -> None:
    for around in ("{}", "见{}。", "see {} now"):
        assert redact(around.format(harmless)) == around.format(harmless)


def test_several_in_one_text_and_in_nested_values() -> None:
    redactor = Redactor()
    body = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "13812345678, 13912345679 a@b.cn"}]}
        ],
        "max_tokens": 13812345678,
    }
    found = redactor.value(body)
    assert found["messages"][0]["content"][0]["text"] == "[phone], [phone] [email]"
    assert found["max_tokens"] == 13812345678
    assert redactor.counts == {"phone": 2, "email": 1}


def test_a_number_after_an_international_one_does_not_hide_it() -> None:
    assert redact("+86 13812345678 2023-11-16").startswith("[phone]")
    assert redact("+44 20 7946 0958 2023-11-16").startswith("[phone]")


def test_check_digits_against_their_definition() -> None:
    source = random.Random(7)
    for _ in range(200):
        body = f"{source.randint(110000, 659999)}{source.randint(1950, 2020)}0{source.randint(1, 9)}15"
        body += f"{source.randint(0, 999):03}"
        right = [digit for digit in "0123456789X" if is_id_card(body + digit)]
        assert len(right) == 1
        stem = "62" + "".join(source.choices("0123456789", k=source.randint(13, 16)))
        assert sum(is_bank_card(stem + digit) for digit in "0123456789") == 1


def test_long_texts_of_digits_and_signs_take_no_time() -> None:
    for hostile in ("1" * 20_000, "1 " * 20_000, "a." * 20_000 + "@", "+1" + " (" * 20_000, "a@" * 20_000):
        redact(hostile)
