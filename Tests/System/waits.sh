#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# How a script in Python ends when something does not happen: at the first wait that fails, with what its caller shows.
. "$(dirname "$0")/lib.sh"

# ends SCRIPT: runs the script, with a limit of no time, to its end with exit code 1; its output is $work/out.
ends() {
    printf 'import harness\nfrom harness import check, finish, until\nharness.LIMIT = 0\n%s\nfinish()\n' "$1" >"$work/waits.py"
    code=0
    PYTHONPATH=$here python3 "$work/waits.py" >"$work/out" || code=$?
    [ "$code" = 1 ] && [ "$(grep -c 'FAILED: waits.py, line' "$work/out")" = 1 ]
}
check "a loop ends with the first wait that fails" ends '
for number in range(1000):
    print("round", number)
    until(lambda: False)
print("after the loop")'
check "the second round does not wait" lacks "$work/out" 'round 2|after'
check "a script ends with the check after a wait that fails" ends '
until(lambda: False)
check("the last sentence", True)
check("another sentence", True)'
check "the check after the wait is shown" holds "$work/out" 'ok: the last sentence'
check "no other one is" lacks "$work/out" another
check "a check that shows the wait is the last one" ends '
check("it happens", until(lambda: False), "what there is instead")
check("another sentence", True)'
check "its sentence is shown" holds "$work/out" 'FAILED: it happens$'
check "its detail is shown" holds "$work/out" 'what there is instead'
check "no check follows" lacks "$work/out" another
check "a thread that waits in vain ends the script, too" ends '
import threading
thread = threading.Thread(target=lambda: until(lambda: False))
thread.start()
thread.join()
until(lambda: print("not waited for") or True)'
check "and nothing is waited for after it" lacks "$work/out" 'not waited for'
finish
