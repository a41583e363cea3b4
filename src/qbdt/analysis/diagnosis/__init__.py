"""What limits a result: over-training, features, sources, and the number of trees and events."""

__all__: list[str] = []
