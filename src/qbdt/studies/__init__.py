"""Studies made with the package: the paper (`paper`), its events (`generator`), the physics benchmark (`benchmark`)."""

__all__: list[str] = []
