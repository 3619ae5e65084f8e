# SPDX-License-Identifier: GPL-3.0-or-later
"""Becomes the given program, which then cannot call capset(2): it is refused with EPERM, as by the system call filter of
badged.service. seccomp(2)."""
import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
CAPSET = 126
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM

# Each: code, jump if true, jump if false, value. The number of the call is the first thing in seccomp_data.
instructions = b"".join(struct.pack("<HBBI", *instruction) for instruction in (
    (LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, CAPSET), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)))
buffer = ctypes.create_string_buffer(instructions)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


program = Program(len(instructions) // 8, ctypes.addressof(buffer))
prctl = ctypes.CDLL(None, use_errno=True).prctl
zero = ctypes.c_ulong(0)
for call in ((PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero),
             (PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero)):
    if prctl(*call) != 0:
        sys.exit(f"no-capset.py: error: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
