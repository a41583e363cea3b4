"""Likelihood fits of templates."""
