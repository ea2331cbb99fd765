"""Reads every CSV table of a results folder once; the rows of a study, or of any runs, are views of them."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

import pandas as pd

from benchmark.disk import OF_STUDY, STUDY_TABLES, TABLES, ResultsFolder
from benchmark.disk.tables import join_runs, read_as_text, typed
from benchmark.wording import paper_dataset

OF_STUDIES = tuple(table.name for table in STUDY_TABLES)


class Rows(Mapping[str, pd.DataFrame]):
    """Tables by name. Cells are text, as the files have them, until a table is asked for."""

    def __init__(self, text: Mapping[str, pd.DataFrame]):
        self._text, self._typed = text, dict[str, pd.DataFrame]()

    @classmethod
    def read(cls, results: ResultsFolder) -> "Rows":
        return cls({name: read_as_text(results, name) for name in TABLES})

    def __getitem__(self, name: str) -> pd.DataFrame:
        """Typed; rows that name their run only are joined with what is known of it."""
        if name not in self._typed:
            rows = typed(self._text[name], name)
            self._typed[name] = join_runs(rows, self["runs"]) if name in OF_STUDIES and name != "runs" else rows
        return self._typed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._text)

    def __len__(self) -> int:
        return len(self._text)

    @cached_property
    def digest(self) -> str:
        return rows_digest(*self._text.values())

    def only(self, *names: str) -> "Rows":
        return Rows({name: self._text[name] for name in names})

    def of_study(self, study: str, runs: Collection[str] | None = None) -> "Rows":
        """Of all its runs, or of those that are named."""
        return self.where(lambda rows: (rows["study"] == study) & (rows["run"].isin(runs) if runs else True))

    def where(self, is_wanted: Callable[[pd.DataFrame], pd.Series]) -> "Rows":
        """The rows of runs that a condition on their studies and settings picks."""
        known = self._text["runs"][is_wanted(self._text["runs"])]
        keys = pd.MultiIndex.from_frame(known[list(OF_STUDY)])

        def pick(rows: pd.DataFrame) -> pd.DataFrame:
            if "dataset" in rows:  # also runs that failed, which the table of runs does not have
                return rows[is_wanted(rows)]
            if "study" in rows:
                return rows[pd.MultiIndex.from_frame(rows[list(OF_STUDY)]).isin(keys)]
            return rows[rows["run"].isin(known["run"])]

        return Rows({name: pick(self._text[name]) for name in OF_STUDIES})

    def studies(self) -> list[str]:
        return sorted(self._text["accuracy"]["study"].unique())


def rows_digest(*tables: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    for rows in tables:
        digest.update(repr([*rows.columns]).encode())
        digest.update(pd.util.hash_pandas_object(rows, index=False, categorize=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]


def paper_rows(rows: Rows, studies: Sequence[str]) -> Rows:
    """Those of our own studies on the paper's data sets."""
    from benchmark.paper.numbers import clean_accuracy

    datasets = set(clean_accuracy().index)
    return rows.where(lambda some: some["study"].isin(studies) & some["dataset"].map(paper_dataset).isin(datasets))
