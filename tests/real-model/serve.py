"""Serves a GGUF model on loopback with llama.cpp: serve.py MODEL TEMPLATE PORT

Prints one line when it is ready, and serves until a signal ends it.
"""

import signal
import sys

import xllamacpp

THREADS = 2
CONTEXT = 8192


def settings(model, template, port):
    chosen = xllamacpp.CommonParams()
    chosen.model.path = model
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = port
    chosen.n_ctx = CONTEXT
    chosen.n_parallel = 1
    chosen.cpuparams.n_threads = THREADS
    chosen.cpuparams_batch.n_threads = THREADS
    # A call must come out the same each time: the likeliest word, always.
    chosen.sampling.temp = 0.0
    chosen.use_jinja = True
    with open(template, encoding="utf-8") as text:
        chosen.chat_template = text.read()
    return chosen


def main():
    model, template, port = sys.argv[1:]
    server = xllamacpp.Server(settings(model, template, int(port)))
    print("ready at", server.listening_address, flush=True)
    while True:
        signal.pause()


main()
