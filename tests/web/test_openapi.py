"""Thousands of requests generated from the OpenAPI schema, against a real server."""

import sys
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.browser

# Examples per operation: valid by the schema, invalid, and realistic questions. Slow operations get fewer.
EXAMPLES = {"/api/answer": (600, 400, 60), "/api/plan": (300, 400, 40), "/api/curves": (40, 150, 3), "/api/compare": (60, 150, 8)}
SELDOM = (6, 60, 1)
AT_LEAST = 2000

NUMBERS = st.one_of(
    st.floats(1e-3, 50.0).map(repr),
    st.integers(1, 3000).map(str),
    st.sampled_from(["?", "0", "-1", "1/3", "1e-6", "1e-300", "1e400", "9" * 390, "1/0", "nan", "inf", "?)", " 4 ", "4e", "²", "ε"]),
)
NAMES = st.sampled_from(
    ["gaussian", "laplace", "pure", "dpsgd", "approximate", "gdp", "composed", "mixture", "noisy_max", "points", "nothing"]
)
MECHANISMS = st.one_of(
    NUMBERS.map("gaussian(sigma={})".format),
    NUMBERS.map("laplace(scale={})".format),
    NUMBERS.map("pure(epsilon={})".format),
    st.tuples(NUMBERS, NUMBERS).map(lambda given: "approximate(epsilon={}, delta={})".format(*given)),
    st.tuples(NUMBERS, NUMBERS, NUMBERS).map(lambda given: "dpsgd(noise_multiplier={}, sampling_probability={}, steps={})".format(*given)),
    st.tuples(NAMES, NUMBERS).map(lambda given: "composed({}(sigma={}), times=3)".format(*given)),
    st.text(max_size=60).filter(str.strip),
)
COUNTS = st.one_of(
    st.tuples(st.sampled_from(["geometric", "poisson", "logarithmic"]), NUMBERS).map(lambda given: "{}(mean={})".format(*given)),
    st.tuples(NUMBERS, NUMBERS).map(lambda given: "negative_binomial(eta={}, mean={})".format(*given)),
    st.tuples(NUMBERS, NUMBERS).map(lambda given: "binomial(n={}, p={})".format(*given)),
    NUMBERS.map("finite({{1: {}, 2: 1}})".format),
    st.text(max_size=60).filter(str.strip),
)


REAL = ("gaussian(sigma={})", "laplace(scale={})", "dpsgd(noise_multiplier={}, sampling_probability=0.01, steps=500)")
LAWS = (None, "geometric(mean={})", "poisson(mean={})", "negative_binomial(eta=1/2, mean={})")


@st.composite
def real_question(draw, path):
    """Draw a question that has an answer, or nearly does."""
    numbers = {
        "mechanism": draw(st.floats(0.8, 20.0)),
        "count": draw(st.floats(1.5, 1000.0)),
        "epsilon": draw(st.floats(0.3, 10.0)),
        "delta": draw(st.floats(1e-9, 1e-3)),
    }
    mechanism, law = draw(st.sampled_from(REAL)), draw(st.sampled_from(LAWS))
    if path == "/api/design":
        budget = {name: numbers[name] for name in ("epsilon", "delta")}
        return {**budget, "mechanism": mechanism.format(numbers["mechanism"]), "cap": 6, "mean": 3, "tau": 0.1}
    unknown = draw(st.sampled_from([name for name in numbers if law or name != "count"]))
    value = numbers[unknown]
    numbers[unknown] = "?"
    question = {**numbers, "mechanism": mechanism.format(numbers["mechanism"]), "count": law and law.format(numbers["count"])}
    return question if path == "/api/answer" else {**question, "value": value}


def test_no_question_is_a_fault_of_the_server(server):
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

    for name, strategy in (("mechanism", MECHANISMS), ("count", COUNTS), ("number", NUMBERS)):
        schemathesis.openapi.format(f"privselect-{name}", strategy)
    schema = schemathesis.openapi.from_url(f"{server.url}api/openapi.json")
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    seen, spent = Counter(), Counter()

    def ask(operation, cases, examples):
        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=cases)
        def asked(case):
            begun = time.perf_counter()
            response = case.call(timeout=150)
            seen[operation.path, response.status_code] += 1
            spent[operation.path, response.status_code] += time.perf_counter() - begun
            case.validate_response(response, checks=checks)

        asked()

    for found in schema.get_all_operations():
        operation = found.ok()
        generated = [operation.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
        real = real_question(operation.path).map(lambda body, case=operation.Case: case(body=body, media_type="application/json"))
        for cases, examples in zip((*generated, real), EXAMPLES.get(operation.path, SELDOM), strict=True):
            ask(operation, cases, examples)
    for key, number in sorted(seen.items()):
        sys.stdout.write(f"{number:6} {key[0]} {key[1]} {spent[key]:8.1f} s\n")
    assert sum(seen.values()) >= AT_LEAST
    assert {status // 100 for _, status in seen} <= {2, 4}
    # A minimum of realistic questions.
    assert seen["/api/answer", 200] > 30
    assert seen["/api/plan", 200] > 5
    assert all(seen[path, 422] for path in EXAMPLES)
