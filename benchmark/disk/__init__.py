"""Files that are whole or absent, the layout of a results folder, its CSV tables and their one schema."""

from benchmark.disk.files import (
    CHECKSUMS,
    OLD,
    PARTIAL,
    UNREADABLE,
    MappedRows,
    atomic_file,
    atomic_folder,
    check_unpacked_size,
    checksum,
    find_damage,
    flush,
    is_transient,
    locked,
    new_array,
    open_array,
    open_arrays,
    read_json,
    remove,
    write_checksums,
    write_json,
    write_text,
)
from benchmark.disk.manifest import Manifest, Output, code_digest
from benchmark.disk.provenance import provenance_columns
from benchmark.disk.results_folder import COMMITTED, COMMITTED_FIGURES, ResultsFolder, slug
from benchmark.disk.schema import OF_STUDY, STUDY_TABLES, TABLES
from benchmark.disk.spreadsheets import as_csv, restored
