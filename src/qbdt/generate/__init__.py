"""Simulation of the h → γττ study: leading-order matrix elements, Pythia for shower and tau decays, a toy detector."""

from qbdt.generate.driver import GenerateSettings, generate_tautaugamma

__all__ = ["GenerateSettings", "generate_tautaugamma"]
