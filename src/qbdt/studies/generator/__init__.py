"""The generator of h → γττ and its background: in, numbers of events and a seed; out, a folder of Parquet files."""

from qbdt.studies.generator.driver import GenerateSettings, generate_tautaugamma

__all__ = ["GenerateSettings", "generate_tautaugamma"]
