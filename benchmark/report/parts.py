"""The parts of a report: one per study, and costs, audits and the paper; each has tables, figures and README blocks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchmark.display import Group, PageTable
from benchmark.report.compact import compact
from benchmark.report.readme import CHANGING, as_block
from benchmark.report.study_tables import study_groups, summary_groups
from benchmark.wording import dataset_title, network_title

if TYPE_CHECKING:
    from benchmark.display.canvas import Drawing

Tables = Mapping[str, pd.DataFrame]  # by name


class Part:
    """A folder of tables, a folder of figures, and a part of the page."""

    name: str
    title: str

    def __init__(self, rows: Tables):
        self.rows = rows

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Without what differs from run to run."""
        return {name: _stable(group) for name, group in self.make_groups().items()}

    def make_groups(self) -> dict[str, Group]:
        raise NotImplementedError

    def shown(self) -> list[Group]:
        """In the terminal."""
        return list(self.groups.values())

    def compact(self) -> Group:
        """What fits on a screen: one table, and what it says."""
        first = next(iter(self.shown()), Group("", []))
        return Group(first.tables[0][0] if first.tables else "", first.tables[:1])

    def in_readme(self) -> list[Group]:
        return self.shown()

    def readme_block(self, kind: str) -> str:
        """Of one group, or of those that a README shows together."""
        if not kind:
            return as_block(self.in_readme())
        return as_block([self.groups[kind]]) if kind in self.groups else ""

    def drawings(self) -> Iterator["Drawing"]:
        yield from ()

    def runs(self) -> PageTable | None:
        """Its runs, if it is a study."""
        return None

    def summary(self) -> str:
        return ""


def _stable(group: Group) -> Group:
    return replace(
        group, tables=[(title, table.drop(columns=CHANGING, errors="ignore")) for title, table in group.tables]
    )


class StudyPart(Part):
    def __init__(self, rows: Tables, study: str):
        super().__init__(rows)
        self.name = self.title = study

    def make_groups(self) -> dict[str, Group]:
        from benchmark.paper.tables import study_paper_groups

        return study_groups(self.rows) | study_paper_groups(self.rows)

    def shown(self) -> list[Group]:
        """What each change does, or kinds of noise; summaries of several settings; of one, detection and accuracy."""
        if "variants" in self.groups:
            return [self.groups["variants"]]
        if "noise-kinds" in self.groups:
            names = ("noise-kinds", "noise-accuracy", "wrong-labels")
            return [self.groups[name] for name in names if name in self.groups]
        groups = summary_groups(self.rows)
        summaries, single = ("summary", "averaged", "accuracy-summary"), ("auc", "averaged", "accuracy")
        names = summaries if {"summary", "accuracy-summary"} & set(groups) else single
        return [groups[name] for name in names if name in groups and groups[name].tables]

    def compact(self) -> Group:
        return compact(self.rows)

    def drawings(self) -> Iterator["Drawing"]:
        from benchmark.drawings.kinds import study_drawings

        return study_drawings(self.rows)

    def runs(self) -> PageTable | None:
        runs = self.rows["runs"].drop(columns="study").dropna(axis="columns", how="all")
        if runs.empty:
            return None
        varying = [column for column in runs if runs[column].nunique() > 1 or column in ("run", "dataset", "recipe")]
        same = ", ".join(f"{column} {runs[column].iloc[0]}" for column in runs if column not in varying)
        return PageTable("Runs", runs[varying], f"The same in all runs: {same}.", filterable=("dataset", "recipe"))

    def summary(self) -> str:
        """What was run, in a sentence or two."""
        runs = self.rows["runs"]
        if runs.empty:
            return ""

        def all_of(column: str, show: Callable[[Any], str] = str) -> str:
            return ", ".join(show(value) for value in sorted(runs[column].unique()))

        datasets, networks = all_of("dataset", dataset_title), all_of("backbone", network_title)
        return (
            f"{self.name}: {len(runs)} training runs ({all_of('recipe')}) on {datasets}; {all_of('noise')} noise at "
            f"{all_of('rate', lambda rate: f'{rate:.0%}')}; training seeds {all_of('training_seed')}; noise seeds "
            f"{all_of('noise_seed')}; {networks} at {all_of('image_size')} px; {all_of('epochs')} epochs. "
            f"Code {all_of('commit')}, torch {all_of('torch')}, timm {all_of('timm')}, Python {all_of('python')}."
        )


class CostPart(Part):
    """What `linc-bench profile` measured."""

    name, title = "overhead", "Costs"

    def make_groups(self) -> dict[str, Group]:
        from benchmark.overhead.tables import overhead_groups

        return overhead_groups(self.rows.__getitem__)

    def in_readme(self) -> list[Group]:
        """One line-up, without the columns that are checks; and what the reference adds."""
        from benchmark.overhead.tables import COST_NOTES

        shown = {name: group for name, group in self.groups.items() if name in ("cost", "terms")}
        if cost := shown.get("cost"):
            first = cost.tables[0][0].split(":")[0]
            tables = [(title, table) for title, table in cost.tables if title.startswith(first)]
            shown["cost"] = replace(cost, tables=tables, notes=list(COST_NOTES))
        return list(shown.values())

    def drawings(self) -> Iterator["Drawing"]:
        from benchmark.overhead.figures import overhead_drawings

        return overhead_drawings(self.rows.__getitem__)


class AuditPart(Part):
    """What `linc-bench try-audit` found."""

    name, title = "audit", "Audits"

    def make_groups(self) -> dict[str, Group]:
        from benchmark.audit.trial_tables import trial_groups

        return trial_groups(self.rows.__getitem__)

    def in_readme(self) -> list[Group]:
        return [group for name, group in self.groups.items() if name != "precision"]

    def drawings(self) -> Iterator["Drawing"]:
        from benchmark.drawings.audits import audit_drawings

        return audit_drawings(self.rows.__getitem__)
