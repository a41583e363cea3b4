"""Records: JSON files of ours that are read again.

In: plain data, and files that may be damaged. Out: the data and their numbers as they were written, or an error.
"""

from qbdt.files.records.record_file import read_record, write_record
from qbdt.files.records.record_numbers import read_float, read_floats

__all__ = ["read_float", "read_floats", "read_record", "write_record"]
