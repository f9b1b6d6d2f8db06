"""``privselect delta``."""

from privselect.cli.options import AsJson, CountText, EpsilonText, MechanismText
from privselect.cli.printing import print_answer, print_json
from privselect.cli.reading import read_count, read_epsilon, read_mechanism, select


def delta(mechanism: MechanismText, epsilon: EpsilonText, count: CountText = None, json: AsJson = False) -> None:
    """The delta that holds at this epsilon."""
    at = read_epsilon(epsilon)
    base, law = read_mechanism(mechanism), read_count(count)
    alone = base.delta_at(epsilon=at)
    answer = alone if law is None else select(base, law).delta_at(epsilon=at)
    if not json:
        from privselect.text_forms import write_value

        print_answer(f"delta at epsilon {write_value(at)}", answer, None if law is None else alone)
        return
    print_json(
        {
            "epsilon": at,
            "delta": answer.as_dict(),
            "mechanism": str(base),
            "count": None if law is None else str(law),
            "base_delta": alone.as_dict(),
        }
    )
