"""Write the golden record again, for a change that moves a bound on purpose: ``OPENBLAS_NUM_THREADS=1 python tests/golden/make.py``."""

import json

from answers import answer, environment
from questions import questions
from record import RECORD

if __name__ == "__main__":
    answers = [{"question": question, "answer": answer(question)} for question in questions()]
    lines = ",\n".join(json.dumps(entry) for entry in answers)
    RECORD.write_text(f'{{"environment": {json.dumps(environment())},\n"answers": [\n{lines}\n]}}\n', encoding="utf-8")
