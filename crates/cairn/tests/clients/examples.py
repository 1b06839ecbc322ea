"""Runs one example program of the Python Agent SDK, unchanged, with the program that is given by path.

Usage: examples.py PROGRAM EXAMPLE
"""

import runpy
import sys

from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

program, example = sys.argv[1:]
# The wheel brings a program of its own, and most examples name none.
SubprocessCLITransport._find_cli = lambda _: program
sys.argv = [example, "all"]
runpy.run_path(example, run_name="__main__")
