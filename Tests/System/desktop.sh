#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged-desktop: its German, and its window under Xvfb, driven by the keyboard and read as a screen reader reads it. It
# logs in against badged-eidserver; a program in the place of pinentry answers the windows for secrets. Pictures go to
# $BADGED_PICTURES, if that is set.
. "$(dirname "$0")/lib.sh"
needs xgettext msgfmt mypy
# The packages of Debian belong to its own Python, which need not be the first one.
python=/usr/bin/python3
export PYTHONPATH="$root/clients/desktop:$root/clients/python/src"
check "each text has its German, with the same placeholders" "$root/po/update" --check
types() { (cd "$root/clients/desktop" && MYPYPATH=../python/src mypy --strict --config-file= --cache-dir "$work/mypy" badged_desktop/language.py \
    badged_desktop/foreign.py badged_desktop/texts.py badged_desktop/session.py); }
check "mypy finds no fault in the parts without a display" types
check "their tests pass" "$python" -W error -m unittest discover -s "$root/clients/desktop/tests"

needs Xvfb dbus-run-session xdotool localedef
"$python" -c 'import gi; gi.require_version("Gtk", "4.0"); gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gtk' 2>/dev/null || cannot "needs python3-gi, gir1.2-gtk-4.0 and gir1.2-atspi-2.0 (make setup)"
needs_programs badged badgectl badged-activation badged-eidserver
mkdir -p "$work/locales/de/LC_MESSAGES" "$work/system" "$work/home" "$work/run"
chmod 700 "$work/run"
msgfmt --output-file="$work/locales/de/LC_MESSAGES/badged.mo" "$root/po/de.po"
localedef --no-archive -i de_DE -f UTF-8 "$work/system/de_DE.UTF-8" 2>/dev/null || cannot "needs the package locales (make setup)"
start_eidserver --reports
export LC_ALL=de_DE.UTF-8 LOCPATH="$work/system" BADGED_LOCALES="$work/locales" HOME="$work/home" XDG_RUNTIME_DIR="$work/run"
export GDK_BACKEND=x11 GSK_RENDERER=cairo GTK_A11Y=atspi
unset LANGUAGE WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
# The server chooses a display number that is free, and tells it.
Xvfb -displayfd 3 -noreset -screen 0 1000x900x24 -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
display=$!
trap 'kill $display 2>/dev/null; stop_all; rm -rf "$work"' EXIT
eventually test -s "$work/display" || cannot "Xvfb does not start"
DISPLAY=:$(cat "$work/display")
export DISPLAY
dbus-run-session -- "$python" -W ignore "$here/desktop.py" "$root" "$bin" "$work" "$url" 2>"$work/desktop.log" || {
    tail -n 20 "$work/desktop.log"
    failures=1
}
stop_eidserver
grep '"outcome":"ok"' "$work/server.out" | head -n 1 >"$work/report" || true
check "the service has read what was agreed to" holds "$work/report" '"FamilyName"'
check "what was switched off is not read" lacks "$work/report" '"PlaceOfBirth"'
finish
