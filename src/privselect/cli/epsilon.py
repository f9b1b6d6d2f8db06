"""``privselect epsilon``."""

from privselect.cli.options import AccuracyText, AsJson, CountText, DeltaText, MechanismText
from privselect.cli.printing import print_answer, print_json
from privselect.cli.reading import read_accuracy, read_count, read_delta, read_mechanism, select


def epsilon(
    mechanism: MechanismText, delta: DeltaText, count: CountText = None, accuracy: AccuracyText = None, json: AsJson = False
) -> None:
    """The epsilon that holds at this delta."""
    at, within = read_delta(delta), read_accuracy(accuracy)
    base, law = read_mechanism(mechanism), read_count(count)
    chosen, alone = select(base, law), base.epsilon_at(delta=at, accuracy=within if law is None else None)
    answer = alone if law is None else chosen.epsilon_at(delta=at, accuracy=within)
    if not json:
        from privselect.text_forms import write_value

        print_answer(f"epsilon at delta {write_value(at)}", answer, None if law is None else alone)
        return

    from privselect.selection import Selection

    print_json(
        {
            "delta": at,
            "epsilon": answer.as_dict(),
            "mechanism": str(base),
            "count": None if law is None else str(law),
            "base_epsilon": alone.as_dict(),
            "selection_gap": chosen.selection_gap(delta=at) if isinstance(chosen, Selection) else None,
        }
    )
