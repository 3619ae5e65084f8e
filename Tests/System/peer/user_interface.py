# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives AusweisApp2 another main.qml, which replaces the actions of its windows when there is no window.

AusweisApp2 looks for its resources in the home of its user first. The copy there has our main.qml in place of its own.
"""

import os
import struct

INSTALLED = "/usr/share/AusweisApp2/AusweisApp2.rcc"
MAIN = "/qml/+desktop/main.qml"
NODE = 22  # bytes of an entry of the tree in versions 2 and 3 of the format


def entry(content, path):
    """The position of the entry of a file in the tree of a resource file."""
    _, _, tree, _, names = struct.unpack(">4s4I", content[:20])

    def name(at):
        count = struct.unpack(">H", content[at:at + 2])[0]
        return content[at + 6:at + 6 + 2 * count].decode("utf-16-be")

    index = 0
    for part in path.strip("/").split("/"):
        count, first = struct.unpack(">II", content[tree + index * NODE + 6:tree + index * NODE + 14])
        for child in range(first, first + count):
            offset = struct.unpack(">I", content[tree + child * NODE:tree + child * NODE + 4])[0]
            if name(names + offset) == part:
                index = child
                break
        else:
            raise FileNotFoundError(path)
    return tree + index * NODE


def install(home, qml):
    """Writes the resources with this main.qml into the home."""
    with open(INSTALLED, "rb") as file:
        content = bytearray(file.read())
    data = struct.unpack(">I", content[12:16])[0]
    at = entry(content, MAIN)
    text = qml.encode()
    content[at + 4:at + 6] = struct.pack(">H", 0)  # not compressed
    content[at + 10:at + 14] = struct.pack(">I", len(content) - data)
    content += struct.pack(">I", len(text)) + text
    folder = os.path.join(home, ".local", "share", "AusweisApp2")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "AusweisApp2.rcc"), "wb") as file:
        file.write(content)
