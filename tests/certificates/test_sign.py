"""Signatures: whose they are, and what they belong to."""

import json
import stat
import sys

import pytest
from example_certificates import fields, issued, rehashed, remade

import privselect as ps
from privselect.certificates.model import RunMetadata
from privselect.certificates.sign import _SMALL_ORDER, new_key, sign
from privselect.errors import MissingExtraError, ParameterError


@pytest.fixture
def key(tmp_path):
    return tmp_path / "key.pem", new_key(tmp_path / "key.pem")


def test_a_signed_certificate_tells_its_key(key):
    signed = sign(issued(), key[0])
    verdict = ps.verify(signed.to_json())
    assert verdict.holds
    assert verdict.signed_by == key[1]
    assert len(verdict.unprotected) == 4  # anyone can make a key
    assert key[1] in verdict.summary
    known = ps.verify(signed.to_json(), key=key[1])
    assert known.holds
    assert known.unprotected == ()


def encoded(y, sign):
    return (y | sign << 255).to_bytes(32, "little").hex()


@pytest.mark.parametrize("y", sorted(_SMALL_ORDER))
@pytest.mark.parametrize("sign_bit", [0, 1])
def test_a_key_of_small_order_signs_nothing(y, sign_bit):
    forged = fields(issued())
    forged["signature"] = {"algorithm": "ed25519", "public_key": encoded(y, sign_bit), "value": "01" + 63 * "00"}
    verdict = ps.verify(json.dumps(forged))
    assert not verdict.holds
    assert verdict.signed_by is None
    with pytest.raises(ParameterError, match="`key` must be a public key"):
        ps.verify(issued(), key=encoded(y, sign_bit))


def test_these_are_the_points_of_small_order():
    p, d = 2**255 - 19, -121665 * pow(121666, -1, 2**255 - 19) % (2**255 - 19)
    root = pow(2, (p - 1) // 4, p)

    def point(y):
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(square, (p + 3) // 8, p)
        x = x if x * x % p == square else x * root % p
        assert x * x % p == square
        return x, y

    def double(x, y):
        m = d * x * x * y * y % p
        return 2 * x * y * pow(1 + m, -1, p) % p, (y * y + x * x) * pow(1 - m, -1, p) % p

    for y in _SMALL_ORDER:
        assert double(*double(*double(*point(y)))) == (0, 1)


def test_a_key_file_is_for_its_owner_and_never_overwritten(key):
    assert stat.S_IMODE(key[0].stat().st_mode) == 0o600
    with pytest.raises(ParameterError, match="must be a file that does not exist yet"):
        new_key(key[0])


@pytest.mark.parametrize(
    "place", [("issued_at", "2020-01-01T00:00:00Z"), ("plan", None), ("versions", None), ("run", None)], ids=lambda place: place[0]
)
def test_a_signature_protects_what_nothing_else_does(key, place):
    data = fields(sign(issued(), key[0]))
    name, value = place
    if name == "plan":
        data["plan"]["declared"]["unit"] = "one company"
    elif name == "versions":
        data["versions"]["numpy"] = "9.9"
    elif name == "run":
        data["run"] = RunMetadata().as_dict()
    else:
        data[name] = value
    verdict = ps.verify(json.dumps(remade(data)))
    assert not verdict.holds
    assert verdict.reasons == ("the signature does not match the content and the key that it names",)
    assert verdict.signed_by is None


def test_a_signature_that_was_changed_is_refused(key):
    data = fields(sign(issued(), key[0]))
    first = data["signature"]["value"][0]
    data["signature"]["value"] = ("0" if first != "0" else "1") + data["signature"]["value"][1:]
    assert "the signature does not match" in ps.verify(json.dumps(data)).summary


def test_a_signature_under_another_name_is_refused(key, tmp_path):
    other = new_key(tmp_path / "other.pem")
    data = fields(sign(issued(), key[0]))
    data["signature"]["public_key"] = other
    assert "the signature does not match" in ps.verify(json.dumps(data)).summary


def test_another_signer_is_refused(key, tmp_path):
    other = new_key(tmp_path / "other.pem")
    signed = sign(issued(), tmp_path / "other.pem")
    assert ps.verify(signed).signed_by == other
    verdict = ps.verify(signed, key=key[1])
    assert verdict.reasons == (f"the certificate is signed by {other}, expected {key[1]}",)


def test_an_unsigned_certificate_is_refused_where_a_signer_is_expected(key):
    assert "the certificate is unsigned" in ps.verify(issued(), key=key[1]).summary


def test_taking_a_signature_off_is_seen_only_by_who_expects_one(key):
    data = fields(sign(issued(), key[0]))
    data["signature"] = None
    assert ps.verify(json.dumps(rehashed(data))).holds
    assert not ps.verify(json.dumps(rehashed(data)), key=key[1]).holds


@pytest.mark.parametrize(
    "wrong", [{"public_key": "00"}, {"value": "zz"}, {"algorithm": "rsa"}, {"public_key": 64 * "G"}, {"public_key": 64 * "0" + "\n"}]
)
def test_a_signature_of_another_shape_is_refused(key, wrong):
    data = fields(sign(issued(), key[0]))
    data["signature"].update(wrong)
    assert not ps.verify(json.dumps(data)).holds


@pytest.mark.parametrize("text", ["", "00", 64 * "g", 64 * "A", 64 * "0" + "\n"])
def test_a_key_that_is_none_is_refused(text):
    with pytest.raises(ParameterError, match="`key` must be a public key"):
        ps.verify(issued(), key=text)


def test_a_key_file_that_is_none_is_refused_without_showing_it(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

    (tmp_path / "text.pem").write_text("a secret")
    (tmp_path / "kind.pem").write_bytes(X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    locked = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (tmp_path / "locked.pem").write_bytes(locked)
    for name in ("text.pem", "kind.pem", "locked.pem", "missing.pem"):
        with pytest.raises(ParameterError, match="`key-file` must be an Ed25519 key") as caught:
            sign(issued(), tmp_path / name)
        assert "secret" not in str(caught.value)


def test_without_the_extra_a_signature_asks_for_it(key, monkeypatch):
    signed = sign(issued(), key[0])
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privselect\[sign\]'"):
        ps.verify(signed)
    assert ps.verify(issued()).holds
