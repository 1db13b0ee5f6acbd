"""The repository's own tooling: probes, virtual environments, checks and the demo.

Standard library only, Python 3.9 or newer, so that it starts on a machine that has nothing yet.
"""
