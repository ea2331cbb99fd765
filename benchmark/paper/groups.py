"""The groups of tables that compare our rows with the paper: those of one study, and of all studies together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from benchmark.display.tables import Group, titled
from benchmark.paper import select
from benchmark.paper.claims import claims_table
from benchmark.paper.headlines import HOW, findings, findings_table, headlines
from benchmark.paper.hypotheses import NOTE, hypothesis_table
from benchmark.paper.select import Tables
from benchmark.paper.tables import clean_table, detection_table, noisy_table
from benchmark.paper.verdicts import RULES, count_table, in_a_sentence, verdict_table
from benchmark.runs import STUDIES
from benchmark.wording import dataset_title

if TYPE_CHECKING:
    from benchmark.display.canvas import Drawing


def study_paper_groups(tables: Tables) -> dict[str, Group]:
    """The claims that a study measures, and the paper's tables with its measurements."""
    metrics, accuracy = tables["metrics"], tables["accuracy"]
    own_layout = [
        *titled("Table 1 of the paper: AUC at 20% noise", detection_table(metrics)),
        *titled("Table 2 of the paper: accuracy without noise", clean_table(accuracy)),
        *titled("Table 3 of the paper: accuracy under symmetric noise", noisy_table(accuracy)),
    ]
    groups = {
        "claims": Group("Claim beside measurement", titled("The paper's claims, and ours", claims_table(tables))),
        "paper": Group("The paper's tables, ours beside", own_layout, for_print=True),
    }
    return {name: group for name, group in groups.items() if group.tables}


def paper_groups(tables: Tables) -> dict[str, Group]:
    """What we found, what was tried to explain it, and a verdict on every number; from the rows of all studies."""
    tables = select.of_the_paper(tables, [study.name for study in STUDIES])
    usual = {name: select.as_in_the_paper(rows) for name, rows in tables.items()}
    judged = verdict_table(usual["metrics"], usual["accuracy"])
    if judged.empty:
        return {}
    found, tried = findings(usual), hypothesis_table(tables)
    groups = {
        "headlines": Group("What we found", [], [*headlines(found), in_a_sentence(judged), HOW]),
        "findings": Group("What we found on each data set", titled("Questions and answers", findings_table(found))),
        "hypotheses": Group("What was tried to explain it", titled("One thing changed at a time", tried), [NOTE]),
        "counts": Group("Verdicts on the paper's numbers", titled("Verdicts, counted", count_table(judged)), [RULES]),
        "verdicts": Group("The paper, number by number", titled("Every number", judged), [RULES]),
        "runs": Group("What was run", titled("Runs and their duration", effort_table(tables["runs"]))),
    }
    return {name: group for name, group in groups.items() if group.tables or name == "headlines"}


def effort_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What was run and how long it took, a row per study and data set."""
    return pd.DataFrame(
        {
            "study": study,
            "data set": dataset_title(str(dataset)),
            "training samples": f"{rows['samples'].iloc[0]:,}",
            "noise rates": ", ".join(f"{rate:.0%}" for rate in sorted(rows["rate"].unique())),
            "runs": len(rows),
            "hours": f"{rows['seconds'].sum() / 3600:.2f}",
        }
        for (study, dataset), rows in runs.groupby(["study", "dataset"], sort=True)
    )


def paper_drawings() -> Iterator["Drawing"]:
    from benchmark.display.canvas import Drawing
    from benchmark.paper.diagram import CAPTION, overview

    yield Drawing("overview", overview, (), CAPTION)
