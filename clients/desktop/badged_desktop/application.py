# SPDX-License-Identifier: GPL-3.0-or-later
"""The application: one for each desktop session. A second start hands its link to the first one."""

from __future__ import annotations

import signal
import sys

import gi

gi.require_version("Gdk", "4.0")
gi.require_version("Gtk", "4.0")
from gi.repository import Gdk, Gio, GLib, Gtk  # noqa: E402

from . import language  # noqa: E402
from .language import _  # noqa: E402
from .window import APPLICATION, ICON, Window, load_style  # noqa: E402


def usage() -> str:
    """The text of --help."""
    call = _("usage:")
    about = _("The window of badged: logs in with the ID card, changes the PIN, shows the readers.")
    link = _("LINK begins with eid:, or is the address of a service's TcToken.")
    background = _("--background shows no window until a browser asks. The manual page has more: badged-desktop(1).")
    return f"""\
{call} badged-desktop [--background] [LINK]
{" " * len(call)} badged-desktop --help | --version

{about}
{link}
{background}
"""


class Application(Gtk.Application):
    """Starts the window, and keeps it while browsers are served."""

    def __init__(self, badgectl: str) -> None:
        super().__init__(application_id=APPLICATION, flags=Gio.ApplicationFlags.HANDLES_COMMAND_LINE)
        #: Whether the program goes on when the window is closed.
        self.stays = False
        self._badgectl = badgectl
        self._window: Window | None = None

    def do_command_line(self, command_line: Gio.ApplicationCommandLine) -> int:
        arguments = command_line.get_arguments()[1:]
        is_new = self._window is None
        if self._window is None:
            load_style()
            follow_dark_style()
            Gtk.Window.set_default_icon_name(ICON)
            self._window = Window(self, self._badgectl)
            self._window.session.start()
        links = [argument for argument in arguments if not argument.startswith("--")]
        if "--background" in arguments and is_new:
            self.stays = True
            self.hold()
        if "--background" not in arguments:
            self._window.come()
        for link in links[:1]:
            self._window.session.log_in(link)
        return 0


def follow_dark_style() -> None:
    """Takes the dark colours if the desktop prefers them: org.freedesktop.appearance of the portal."""
    settings = Gtk.Settings.get_default()
    if settings is None:
        return

    def apply(value: GLib.Variant) -> None:
        while value.get_type_string() == "v":
            value = value.get_variant()
        if value.get_type_string() == "u":
            settings.set_property("gtk-application-prefer-dark-theme", value.get_uint32() == 1)

    def found(_source: object, result: Gio.AsyncResult) -> None:
        try:
            proxy = Gio.DBusProxy.new_for_bus_finish(result)
        except GLib.Error:
            return
        if proxy.get_name_owner() is None:
            return
        proxy.connect("g-signal", changed)
        arguments = GLib.Variant("(ss)", ("org.freedesktop.appearance", "color-scheme"))
        proxy.call("Read", arguments, Gio.DBusCallFlags.NONE, -1, None, read)
        # The proxy, and with it the signal, lives as long as the settings.
        settings.portal = proxy

    def read(proxy: Gio.DBusProxy, result: Gio.AsyncResult) -> None:
        try:
            apply(proxy.call_finish(result).get_child_value(0))
        except GLib.Error:
            return

    def changed(_proxy: object, _sender: str, name: str, values: GLib.Variant) -> None:
        if name == "SettingChanged" and values.unpack()[:2] == ("org.freedesktop.appearance", "color-scheme"):
            apply(values.get_child_value(2))

    Gio.DBusProxy.new_for_bus(
        Gio.BusType.SESSION,
        Gio.DBusProxyFlags.NONE,
        None,
        "org.freedesktop.portal.Desktop",
        "/org/freedesktop/portal/desktop",
        "org.freedesktop.portal.Settings",
        None,
        found,
    )


def fail(text: str, hint: str, status: int) -> int:
    """Says why the program ends, and what to do."""
    print(_("badged-desktop: error: {text}", text=text) + "\n" + _("hint: {hint}", hint=hint), file=sys.stderr)
    return status


def main(version: str = "", locales: str | None = None) -> int:
    """Runs the program."""
    language.load(locales)
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(usage(), end="")
        return 0
    if "--version" in arguments:
        print(f"badged-desktop {version}".strip())
        return 0
    links = [argument for argument in arguments if not argument.startswith("-")]
    unknown = [argument for argument in arguments if argument.startswith("-") and argument != "--background"]
    if unknown or len(links) > 1:
        what = _("unknown option {option}", option=unknown[0]) if unknown else _("more than one link")
        return fail(what, "badged-desktop --help", 2)
    if not Gtk.init_check() or Gdk.Display.get_default() is None:
        return fail(_("there is no display"), "badgectl agent", 1)
    GLib.set_prgname(APPLICATION)
    GLib.set_application_name(_("ID card online"))
    application = Application("badgectl")
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGTERM, application.quit)
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, application.quit)
    return int(application.run(sys.argv))
