"""A command at a terminal of its own, with an answer typed wherever it asks.

As a program: ``python answering.py ANSWER COMMAND`` runs COMMAND in bash.
"""

import os
import pty
import sys

_PROMPT = b"]: "  # a question ends with the answers that it takes


def run(answer: str, command: str) -> int:
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("bash", ["bash", "-c", command])
    last = b""
    while True:
        try:
            printed = os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        sys.stdout.buffer.write(printed)
        sys.stdout.buffer.flush()
        last = last[-len(_PROMPT) :] + printed
        if last.endswith(_PROMPT):
            os.write(terminal, f"{answer}\n".encode())
            last = b""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
