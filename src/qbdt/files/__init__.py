"""Files are written whole or not at all, say where they come from, and finished steps are kept.

In: content, paths, and names that people give to things. Out: files and folders that a full disk or Ctrl-C never
spoils, with one-to-one names that file systems and fit programs take.
"""

from qbdt.files.names import choose_file_names, choose_words
from qbdt.files.provenance import digest, digest_file, provenance, versions
from qbdt.files.root_files import recreate_root, stable_root_files
from qbdt.files.step_folder import StepFolder
from qbdt.files.whole_files import (
    FolderLock,
    make_folder,
    replace_file,
    replace_folder,
    require_place,
    scratch_folder,
    write_text,
)

__all__ = [
    "FolderLock",
    "StepFolder",
    "choose_file_names",
    "choose_words",
    "digest",
    "digest_file",
    "make_folder",
    "provenance",
    "recreate_root",
    "replace_file",
    "replace_folder",
    "require_place",
    "scratch_folder",
    "stable_root_files",
    "versions",
    "write_text",
]
