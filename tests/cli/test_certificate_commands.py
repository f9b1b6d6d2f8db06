"""`privselect certify`, `verify`, `sign` and `schema`: what they print, and how they exit."""

import json

import pytest

import privselect as ps
from privselect.certificates.model import RunMetadata
from privselect.cli import main

PLAN = ["--mechanism", "gaussian(sigma=4)", "--delta", "1e-6"]
DECLARED = ["--unit", "one person", "--trust-model", "central: the curator sees the data", "--records-public"]


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return caught.value.code, printed.out, printed.err


@pytest.fixture
def file(tmp_path, capsys):
    assert run(capsys, "certify", *PLAN, *DECLARED, "--out", tmp_path / "c.json")[0] == 0
    return tmp_path / "c.json"


def spoil(file, **changes):
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, **changes}))


def test_certify_prints_the_statement_and_the_hash_of_the_plan(tmp_path, capsys):
    code, out, err = run(capsys, "certify", *PLAN, *DECLARED, "--out", tmp_path / "c.json")
    certificate = ps.Certificate.read(tmp_path / "c.json")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        certificate.statement,
        f"certificate written to {tmp_path / 'c.json'}",
        f"hash of the plan: {certificate.plan_hash}",
    ]
    assert not certificate.draft


def test_certify_without_a_file_prints_the_certificate(capsys):
    code, out, _ = run(capsys, "certify", *PLAN)
    assert code == 0
    assert ps.Certificate.from_json(out).draft


def test_several_accesses_that_are_not_covered(capsys):
    _, out, _ = run(capsys, "certify", *PLAN, "--records-private", "--not-covered", "one", "--not-covered=two", "--score", "public")
    declared = ps.Certificate.from_json(out).plan.declared
    assert declared == ps.Declared(records_public=False, not_covered=("one", "two"), score="public")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", "1"], "`epsilon` must be at least 1.06"),
        (["--epsilon", "-1"], "`epsilon` must be in [0, inf)"),
        (["--epsilon", "nan"], "`epsilon` must be in [0, inf)"),
        (["--unit", "two\nlines"], "`unit` must be one line"),
        (["--unit", ""], "`unit` must have at least 1 character"),
        (["--unit", "a", "--unit", "b"], "`--unit` must be given at most once"),
        (["--out", "."], "`out` must be a file"),
        (["--out", "missing/c.json"], "`out` must be a file in a folder that exists"),
        (["--count", "gaussian(sigma=4)"], "`count` must be a law of K"),
        (["--final", "gaussian(sigma=4)"], "`final` needs a search before it: `count` or `visible` is required"),
        (["--final", "fixed(k=2)", "--visible", "3"], "`mechanism` must be a mechanism"),
        (["--final", "gaussian(sigma=?)", "--visible", "3"], "only `privselect plan` accepts a ?"),
        (["--visible", "0"], "`visible` must be an integer >= 1 and <= 1000000, got '0'"),
        (["--visible", "1e9"], "`visible` must be an integer >= 1 and <= 1000000, got '1e9'"),
        (["--visible", "3", "--count", "fixed(k=2)"], "a search is either secret, with `count`, or visible"),
        (["--visible", "3", "--subsample", "2"], "`subsample` must be a probability in (0, 1] such as 1/10, got '2'"),
        (["--visible", "3", "--subsample", "some"], "`subsample` must be a probability in (0, 1] such as 1/10, got 'some'"),
        (["--visible", "3", "--subsample", "1/0"], "`subsample` must be a probability in (0, 1] such as 1/10, got '1/0'"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_one_line(capsys, arguments, said):
    code, out, err = run(capsys, "certify", *PLAN, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_verify_says_first_that_the_claim_holds(file, capsys):
    code, out, err = run(capsys, "verify", file)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "the claim holds: (1.0608, 1e-06)-DP; unsigned"
    assert "Only a signature by a known key protects" in out


def test_the_stages_of_a_search_and_a_final_training(tmp_path, capsys):
    search = ["--count", "geometric(mean=3)", "--final", "gaussian(sigma=5)"]
    code, out, _ = run(capsys, "certify", *PLAN, *DECLARED, *search, "--out", tmp_path / "c.json")
    assert code == 0
    assert "only the best of K search trials of gaussian(sigma=4) and then the output of one final training" in out
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    assert code == 0
    assert out.splitlines()[1:3] == [
        "search: the best of K trials of gaussian(sigma=4), K drawn from geometric(mean=3) and secret; one trial alone has epsilon 1.0608",
        "final training: gaussian(sigma=5); this training alone has epsilon 0.83417",
    ]
    _, out, _ = run(capsys, "verify", tmp_path / "c.json", "--json")
    assert json.loads(out)["stages"]["final training"] == "gaussian(sigma=5)"


def test_a_visible_search_is_certified(tmp_path, capsys):
    code, out, _ = run(capsys, "certify", *PLAN, *DECLARED, "--visible", "6", "--final", "gaussian(sigma=5)", "--out", tmp_path / "c.json")
    assert code == 0
    assert "Visible search (composition, adaptive candidates)" in out
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    assert code == 0
    assert out.splitlines()[1] == "search: 6 trials of gaussian(sigma=4), all released; one trial alone has epsilon 1.0608"


def test_the_mark_of_a_claimed_mechanism_is_in_the_first_line(tmp_path, capsys):
    ps.certify("gaussian(sigma=4)", delta=1e-6, run=RunMetadata(mechanism_claimed=True)).write(tmp_path / "c.json")
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    assert code == 0
    assert out.splitlines()[0] == "the claim holds: (1.0608, 1e-06)-DP; mechanism claimed by the user; draft; unsigned"


def test_verify_refuses_with_the_reason(file, capsys):
    spoil(file, draft=True)
    code, out, _ = run(capsys, "verify", file)
    assert code == 1
    assert out.splitlines()[0].startswith("REFUSED: the hash does not match the content")
    assert "the draft mark does not match" in out


def test_verify_refuses_a_certificate_without_its_fields(file, capsys):
    file.write_text('{"version": 3}')
    code, out, _ = run(capsys, "verify", file)
    assert code == 1
    assert "is missing" in out


def test_verify_against_the_hash_of_the_plan(file, capsys):
    assert run(capsys, "verify", file, "--plan-hash", ps.Certificate.read(file).plan_hash)[0] == 0
    code, out, _ = run(capsys, "verify", file, "--plan-hash", "sha256:0")
    assert code == 1
    assert out.startswith("REFUSED: the plan is a different one")


def test_verify_as_json(file, capsys):
    code, out, _ = run(capsys, "verify", file, "--json")
    verdict = json.loads(out)
    assert code == 0
    assert verdict["holds"] is True
    assert verdict["signed_by"] is None
    assert verdict["recomputed"]["upper"] == ps.Gaussian(sigma=4).epsilon_at(1e-6).upper
    spoil(file, draft=True)
    code, out, _ = run(capsys, "verify", file, "--json")
    assert code == 1
    assert json.loads(out)["reasons"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("not JSON", "not JSON"),
        ('{"version": 1, "statem', "truncated"),
        ('{"version": 7}', "The certificate has format 7; this version reads format 3"),
    ],
)
def test_a_file_that_cannot_be_judged_is_bad_input(tmp_path, capsys, text, said):
    (tmp_path / "c.json").write_text(text)
    code, out, err = run(capsys, "verify", tmp_path / "c.json")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_bad_input(tmp_path, capsys, name):
    code, _, err = run(capsys, "verify", tmp_path / name)
    assert code == 2
    assert "the certificate must be a file that can be read" in err


def test_a_key_is_made_used_and_asked_for(file, tmp_path, capsys):
    code, out, _ = run(capsys, "sign", "--new-key", tmp_path / "key.pem")
    assert code == 0
    key = out.removeprefix("public key: ").strip()
    code, out, _ = run(capsys, "sign", file, "--key-file", tmp_path / "key.pem", "--out", tmp_path / "signed.json")
    assert code == 0
    assert key in out
    code, out, _ = run(capsys, "verify", tmp_path / "signed.json")
    assert code == 0
    assert out.splitlines()[0] == f"the claim holds: (1.0608, 1e-06)-DP; signed by {key}"
    assert "Confirm the key through another channel" in out
    code, out, _ = run(capsys, "verify", tmp_path / "signed.json", "--key", key)
    assert code == 0
    assert "Confirm the key through another channel" not in out
    assert run(capsys, "verify", tmp_path / "signed.json", "--key", "ab" + 62 * "0")[0] == 1
    assert run(capsys, "verify", file, "--key", key)[0] == 1
    assert run(capsys, "verify", file, "--key", "mine")[0] == 2


def test_signing_in_place(file, tmp_path, capsys):
    assert run(capsys, "sign", file, "--new-key", tmp_path / "key.pem")[0] == 0
    assert ps.Certificate.read(file).signature is not None


def test_nothing_is_signed_that_does_not_hold(file, tmp_path, capsys):
    spoil(file, draft=True)
    before = file.read_text()
    code, out, _ = run(capsys, "sign", file, "--new-key", tmp_path / "key.pem")
    assert code == 1
    assert "REFUSED" in out
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs one of --key-file and --new-key"),
        (["c.json"], "needs one of --key-file and --new-key"),
        (["c.json", "--key-file", "a", "--new-key", "b"], "needs one of --key-file and --new-key"),
        (["--key-file", "a"], "needs the certificate to sign"),
        (["c.json", "--key-file", "a"], "the certificate must be a file that can be read"),
    ],
)
def test_signing_needs_a_certificate_and_a_key(capsys, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "sign", *arguments)
    assert code == 2
    assert said in err


def test_a_key_that_is_there_is_kept(tmp_path, capsys):
    (tmp_path / "key.pem").write_text("mine")
    code, _, err = run(capsys, "sign", "--new-key", tmp_path / "key.pem")
    assert code == 2
    assert "does not exist yet" in err
    assert (tmp_path / "key.pem").read_text() == "mine"


def test_the_schema_is_json(capsys):
    code, out, _ = run(capsys, "schema")
    assert code == 0
    assert "plan_hash" in json.loads(out)["properties"]
