#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""wrapper_api.py TABLE SYMBOLS...: is everything in TABLE public in these symbol graphs of the Swift compiler?

Prints what is missing and what is more; ends with 1 when something is missing."""
import json, re, sys


def plain(declaration):
    """Without what a caller does not see: names of parameters inside, `any`, `final`."""
    text = re.sub(r"\b(any|final|public) ", "", declaration)
    return re.sub(r"([(]|, )(\w+) \w+:", r"\1\2:", text)


def declared(paths):
    members = set()
    for path in paths:
        graph = json.load(open(path))
        names = {}
        for symbol in graph["symbols"]:
            if "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
                continue
            text = plain("".join(part["spelling"] for part in symbol["declarationFragments"]))
            names[symbol["identifier"]["precise"]] = ".".join(symbol["pathComponents"])
            owner = ".".join(symbol["pathComponents"][:-1])
            members.add(f"{owner} | {text}" if owner else text)
        for relation in graph["relationships"]:
            if relation["kind"] == "conformsTo" and relation["source"] in names:
                target = relation.get("targetFallback", "").split(".")[-1]
                members.add(f"{names[relation['source']]} | conforms to {target}")
    return members


table, graphs = sys.argv[1], sys.argv[2:]
lines = [line.rstrip("\n") for line in open(table)]
wanted = {line for line in lines if line and not line.startswith("#")}
public = declared(graphs)
missing = sorted(wanted - public)
for line in missing:
    print("missing:", line)
for line in sorted(public - wanted):
    if "conforms to" not in line:
        print("added:", line)
print(f"{len(wanted) - len(missing)} of {len(wanted)} members are there")
sys.exit(bool(missing))
