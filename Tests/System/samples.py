#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The samples in the documents.

samples.py extract FOLDER PAGE...: writes the samples of each page to FOLDER, as LANGUAGE/PAGE-LINE. The Swift samples of a page are
one program, LANGUAGE/PAGE-LINE/main.swift; a manifest of a package is one of its own.
samples.py compare PAGE FILE: each line of the Swift samples of the page is in the file, in this order.
samples.py type PYTHON PROGRAM ANSWER...: runs the program in a terminal and types an answer at each prompt. Prints what the terminal
shows.
"""
import os
import pty
import re
import sys
import textwrap


def blocks(page):
    """Line number, language and text of each code block."""
    language = None
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip().startswith("```"):
                if language is not None:
                    text.append(line)
            elif language is None:
                start, language, text = number, line.strip()[3:], []
            else:
                yield start, language, textwrap.dedent("".join(text))
                language = None


def compare(page, path):
    with open(path, encoding="utf-8") as file:
        lines = iter([line.strip() for line in file])
    samples = [text for _, language, text in blocks(page) if language == "swift"]
    for line in filter(None, (line.strip() for text in samples for line in text.splitlines())):
        if line not in lines:
            sys.exit(f"{path} has no line in its place: {line}")
    if not samples:
        sys.exit(f"{page} has no sample")


def extract(folder, pages):
    for page in pages:
        program = None
        name = re.sub(r"[^A-Za-z0-9.-]", "-", page.removeprefix("./").removesuffix(".md"))
        for line, language, text in blocks(page):
            if not language:
                sys.exit(f"{page}:{line}: the code block has no language")
            path = os.path.join(folder, language, f"{name}-{line}")
            if language != "swift":
                os.makedirs(os.path.dirname(path), exist_ok=True)
            elif text.startswith("// swift-tools-version"):
                os.makedirs(path)
                path += "/Package.swift"
            else:
                if program is None:
                    os.makedirs(path)
                    program = path + "/main.swift"
                path = program
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)


def type_answers(program, answers):
    """Runs the program in a terminal, and types an answer at each prompt. Returns its exit code and what the terminal shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(program[0], program)
    shown, answers = b"", list(answers)
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
        shown += chunk
        if shown.endswith((b": ", b"(yes)\r\n")):
            # Without a further answer the program would wait for ever.
            os.write(terminal, answers.pop(0).encode() + b"\n" if answers else b"\x03")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def main():
    if sys.argv[1] == "extract":
        extract(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "compare":
        compare(*sys.argv[2:])
    else:
        code, shown = type_answers(sys.argv[2:4], sys.argv[4:])
        sys.stdout.write(shown)
        sys.exit(code)


if __name__ == "__main__":
    main()
