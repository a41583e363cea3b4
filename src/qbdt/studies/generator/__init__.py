"""Front door of studies.generator."""

from qbdt.studies.generator.driver import GenerateSettings, generate_tautaugamma

__all__ = ["GenerateSettings", "generate_tautaugamma"]
