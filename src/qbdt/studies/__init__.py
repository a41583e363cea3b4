"""Front door of studies."""

__all__: list[str] = []
