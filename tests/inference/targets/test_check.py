"""The check before a run: certificates, keys, answers in disguise, and stamps that contradict a server."""

import asyncio
import contextlib
import datetime
import gzip
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from inference.targets.check import check_endpoint
from inference.targets.openai import OpenAITarget

from .fake_server import FakeServer, Script, answer, chunk, event, usage

MODELS = {"data": [{"id": "m"}, {"id": "other"}]}


async def verdicts(script: Script, model: str = "m", **options: Any) -> dict[str, dict[str, Any]]:
    async with FakeServer(lambda body, n: script, models=MODELS) as server:
        report = await check_endpoint(OpenAITarget(server.url, model, **options), has_key=False)
    return {item["code"]: item for item in report["items"]} | {"report": report}


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8
    path = folder / "both.pem"
    path.write_bytes(
        key.private_bytes(pem, plain, serialization.NoEncryption()) + certificate.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def test_a_certificate_that_nobody_trusts_is_named(tmp_path: Path) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=self_signed(tmp_path))
    port = server.sockets[0].getsockname()[1]
    report = await check_endpoint(OpenAITarget(f"https://127.0.0.1:{port}/v1", "m"), has_key=False)
    server.close()
    assert [(item["code"], item["verdict"]) for item in report["items"]] == [("tls", "bad")]
    assert "self-signed" in report["items"][0]["figures"]["text"].replace("self signed", "self-signed")


@pytest.mark.parametrize(
    ("model", "script", "verdict"),
    [
        ("m", Script(answer(["a ", "b"])), "good"),
        ("renamed", Script(answer(["a ", "b"])), "lacks"),  # answered all the same: is it the right one?
        ("gone", Script([(0, b'{"error": "no such model"}')], 404, "application/json"), "bad"),
    ],
)
async def test_the_model_is_held_against_the_list(model: str, script: Script, verdict: str) -> None:
    found = await verdicts(script, model)
    assert found["model"]["verdict"] == verdict
    assert found["report"]["ok"] == (verdict != "bad")


async def test_a_server_whose_own_times_do_not_fit_is_not_believed() -> None:
    writes = answer(["a ", "b"], first_ms=5, finish=None, with_usage=False, done=False)
    told = {"metrics": {"queue_time_ms": 0, "time_to_first_token_ms": 9_000}}
    writes.append((30, event(chunk({}, finish="stop", usage=usage(1, 2), **told))))
    found = await verdicts(Script(writes))
    assert found["first_token"]["verdict"] == "bad"
    assert found["first_token"]["figures"]["contradicts"]


async def test_an_answer_packed_against_the_wish_is_read() -> None:
    whole = b"".join(data for _, data in answer(["a ", "b"]))
    packed = Script([(1, gzip.compress(whole))], headers={"Content-Encoding": "gzip"})
    assert (await verdicts(packed))["answers"]["verdict"] == "good"
    strange = Script([(1, b"\x00\x01")], headers={"Content-Encoding": "br"})
    text = (await verdicts(strange))["answers"]["figures"]["text"]
    assert "packed (br)" in text
    broken = Script([(1, b"no gzip at all")], headers={"Content-Encoding": "gzip"})
    assert "broken" in (await verdicts(broken))["answers"]["figures"]["text"]
