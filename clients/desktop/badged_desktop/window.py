# SPDX-License-Identifier: GPL-3.0-or-later
"""The window: GTK 4. Every text is set as text; texts of strangers go through `foreign`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import gi

gi.require_version("Gdk", "4.0")
gi.require_version("Gtk", "4.0")
from gi.repository import Gdk, Gio, GLib, Gtk, Pango  # noqa: E402

import badged  # noqa: E402

from . import foreign, texts  # noqa: E402
from .language import _  # noqa: E402
from .session import Session, State  # noqa: E402
from .texts import Ending  # noqa: E402

#: Its desktop file sorts before that of badgectl, so that links to eid: come here.
APPLICATION = "badged-desktop.Window"
ICON = "badged"
MARGIN = 18

#: Sizes that grow with the font of the desktop; those of the theme do not.
STYLE = """
.page-title { font-size: 1.5em; font-weight: bold; }
.service-name { font-size: 1.15em; font-weight: bold; }
.section-title { font-weight: bold; }
.small { font-size: 0.85em; }
"""

#: What the administrator runs so that browsers can start a login.
BROWSER_LINES = (
    "sudo apt install badged-activation",
    "printf '[activation]\\nenabled = yes\\n' | sudo install -D -m 644 /dev/stdin"
    " /etc/badged/badged.conf.d/50-browsers.conf && sudo systemctl restart badged",
)


def load_style() -> None:
    """Loads `STYLE`."""
    display = Gdk.Display.get_default()
    if display is not None:
        provider = Gtk.CssProvider()
        if hasattr(provider, "load_from_string"):  # GTK 4.12
            provider.load_from_string(STYLE)
        else:
            provider.load_from_data(STYLE.encode())
        Gtk.StyleContext.add_provider_for_display(display, provider, Gtk.STYLE_PROVIDER_PRIORITY_APPLICATION)


def label(text: str, *classes: str) -> Gtk.Label:
    """A text in lines as long as the window is wide."""
    widget = Gtk.Label(xalign=0, wrap=True, wrap_mode=Pango.WrapMode.WORD_CHAR, hexpand=True)
    # A label without a width of its own asks for a very wide or a very high window.
    widget.set_width_chars(12)
    widget.set_max_width_chars(60)
    # A hyphen at the end of a line would look like a part of a web address.
    attributes = Pango.AttrList()
    attributes.insert(Pango.attr_insert_hyphens_new(False))
    widget.set_attributes(attributes)
    widget.set_text(text)
    for name in classes:
        widget.add_css_class(name)
    return widget


def heading(text: str) -> Gtk.Widget:
    """The title of a page. It takes the focus when the page comes, so that a screen reader reads it."""
    widget = Gtk.Box(focusable=True, accessible_role=Gtk.AccessibleRole.HEADING)
    widget.update_property([Gtk.AccessibleProperty.LABEL], [text])
    widget.append(label(text, "page-title"))
    return widget


def button(text: str, action: Callable[[], object], *classes: str) -> Gtk.Button:
    """A button, with a letter for the keyboard after `_`."""
    # A label of the button itself would be read with its `_`.
    name = Gtk.Label(label=text, use_underline=True, wrap=True, justify=Gtk.Justification.CENTER)
    widget = Gtk.Button(child=name)
    widget.update_property([Gtk.AccessibleProperty.LABEL], [text.replace("_", "")])
    widget.connect("clicked", lambda _button: action())
    for name in classes:
        widget.add_css_class(name)
    return widget


def column(*children: Gtk.Widget, spacing: int = 12) -> Gtk.Box:
    """Widgets below each other."""
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=spacing)
    for child in children:
        box.append(child)
    return box


def section(title: str, children: Iterable[Gtk.Widget]) -> Gtk.Box:
    """A title and what belongs to it."""
    rows = column(*children, spacing=6)
    rows.set_margin_start(12)
    return column(label(title, "section-title"), rows, spacing=6)


def page(content: Gtk.Widget, *buttons: Gtk.Widget) -> Gtk.Box:
    """Content that scrolls, and buttons that are always visible below it."""
    for side in ("start", "end", "top", "bottom"):
        getattr(content, f"set_margin_{side}")(MARGIN)
    scrolled = Gtk.ScrolledWindow(hscrollbar_policy=Gtk.PolicyType.NEVER, vexpand=True, child=content)
    box = column(scrolled, spacing=0)
    if buttons:
        row = Gtk.Box(homogeneous=True, spacing=12)
        for child in buttons:
            row.append(child)
        for side in ("start", "end", "top", "bottom"):
            getattr(row, f"set_margin_{side}")(12)
        box.append(Gtk.Separator())
        box.append(row)
    return box


def long_text(text: str, height: int = 240) -> Gtk.Widget:
    """A text of any length, in a part of the page of `height` pixels that scrolls by itself."""
    view = Gtk.TextView(
        editable=False, cursor_visible=False, wrap_mode=Gtk.WrapMode.WORD_CHAR, accepts_tab=False, left_margin=6
    )
    buffer = view.get_buffer()
    buffer.set_text(text)
    buffer.apply_tag(buffer.create_tag(None, insert_hyphens=False), *buffer.get_bounds())
    return Gtk.ScrolledWindow(child=view, min_content_height=height, hscrollbar_policy=Gtk.PolicyType.NEVER)


def passage(text: str) -> Gtk.Widget:
    """A text of a stranger. One that would push the rest out of the window scrolls by itself."""
    shown = foreign.lines(text)
    return label(shown) if len(shown) < 500 and shown.count("\n") < 8 else long_text(shown, 120)


def expander(title: str, make: Callable[[], Gtk.Widget]) -> Gtk.Expander:
    """Something that is shown on demand, and made only then."""
    widget = Gtk.Expander(label=title)
    widget.update_property([Gtk.AccessibleProperty.LABEL], [title])

    def expanded(*_arguments: object) -> None:
        if widget.get_expanded() and widget.get_child() is None:
            widget.set_child(make())

    widget.connect("notify::expanded", expanded)
    return widget


def switch(text: str, is_on: bool) -> tuple[Gtk.Widget, Gtk.Switch]:
    """A text with a switch, which a click on the text moves, too."""
    widget = Gtk.Switch(active=is_on, valign=Gtk.Align.CENTER)
    name = label(text)
    name.set_mnemonic_widget(widget)
    click = Gtk.GestureClick()
    click.connect("released", lambda *_arguments: widget.set_active(not widget.get_active()))
    name.add_controller(click)
    row = Gtk.Box(spacing=12)
    row.append(name)
    row.append(widget)
    return row, widget


class Window(Gtk.ApplicationWindow):
    """The window of the application. `Session` calls the methods of `View` on its own thread."""

    def __init__(self, application: Gtk.Application, badgectl: str) -> None:
        super().__init__(application=application, title=_("ID card online"), icon_name=ICON)
        self.set_default_size(560, 680)
        self._stack = Gtk.Stack()
        self.set_child(self._stack)
        #: The question of the dialogue that is open in the window, and its value when the window is closed.
        self._question: tuple[asyncio.Future[Any], object] | None = None
        self._shown = ""
        self._is_busy = False
        self._state: State | None = None
        self._says = label("")
        self._bar = Gtk.ProgressBar()
        self._spinner = Gtk.Spinner(width_request=32, height_request=32, halign=Gtk.Align.START)
        self._continue = button(_("_Continue"), lambda: self._answer(True), "suggested-action")
        self._show("waiting", page(column(heading(_("ID card online")), label(_("badged is being looked for.")))))
        self.session = Session(self, badgectl)
        self.connect("close-request", self._closed)
        keys = Gtk.EventControllerKey()
        keys.connect("key-pressed", self._key)
        self.add_controller(keys)

    # Pages

    def _show(self, name: str, content: Gtk.Widget) -> None:
        """Replaces the page."""
        # The window keeps a button of a page that is gone.
        self.set_default_widget(None)
        old = self._stack.get_visible_child()
        self._stack.add_child(content)
        self._stack.set_visible_child(content)
        if old is not None:
            self._stack.remove(old)
        self._shown = name

    def _show_anew(self, name: str, title: Gtk.Widget, content: Gtk.Widget) -> None:
        """Replaces the page by another kind of page, which a screen reader reads from its title on."""
        self._show(name, content)
        title.grab_focus()

    def _answer(self, value: object) -> None:
        if self._question is not None:
            self.session.answer(self._question[0], value)
            self._question = None

    def _key(self, _controller: object, key: int, _code: int, _modifiers: object) -> bool:
        if key != Gdk.KEY_Escape or not self._is_busy:
            return False
        self._stop()
        return True

    def _stop(self) -> None:
        """Gives the workflow up."""
        if self._question is not None:
            self._answer(self._question[1])
        self.session.cancel()

    def _closed(self, _window: object) -> bool:
        """The window was closed. The program goes on without it if it serves browsers."""
        if self._is_busy:
            self._stop()
        application = self.get_application()
        if application.stays:
            self.set_visible(False)
            self._show_main()
            return True
        return False

    def _show_main(self) -> None:
        state = self._state
        if state is None:
            return
        self._is_busy = False
        title = heading(_("ID card online"))
        eid = [reader.card for reader in state.readers if isinstance(reader.card, badged.EIDCard)]
        is_blocked = any(card.retry_counter == 0 and not card.deactivated and not card.inoperative for card in eid)
        parts: list[Gtk.Widget] = [title]
        if state.faults:
            parts.append(section(_("What is missing"), [label(fault) for fault in state.faults]))
        rows: list[Gtk.Widget] = []
        for reader in state.readers:
            name = label(foreign.line(reader.name, 120), "small")
            rows.append(column(label(texts.card(reader)), name, spacing=0))
        parts.append(section(_("Card readers"), rows or [label(_("No card reader is connected."))]))
        actions = [button(_("Change the _PIN"), self.session.change_pin)]
        if is_blocked:
            actions.insert(0, button(_("_Unblock the PIN"), self.session.unblock, "suggested-action"))
        if state.self_address is not None:
            actions.append(button(_("Show my _data"), self.session.show_own_data))
        parts.append(section(_("What you can do"), actions))
        parts.append(section(_("Browsers"), self._browsers(state)))
        self._show("main", page(column(*parts, spacing=18)))

    def _browsers(self, state: State) -> list[Gtk.Widget]:
        if state.is_in_use is None:
            return [
                label(_('You are not allowed to answer browsers. Ask the administrator for the permission "agent".'))
            ]
        if not state.serves_browsers:

            def lines() -> Gtk.Widget:
                code = label("\n".join(BROWSER_LINES), "monospace")
                code.set_selectable(True)
                return column(label(_("The administrator runs these two lines:")), code)

            return [
                label(_("Pages of services cannot start a login here yet. Links that begin with eid: work.")),
                expander(_("What the administrator does"), lines),
                button(_("_Look again"), self.session.refresh),
            ]
        if not state.is_in_use:
            return [label(_("Another program of yours answers browsers at the moment."))]
        return [label(_("Ready. Start a login on the page of a service; the questions come in this window."))]

    def _consent_page(self, rights: badged.AccessRights, certificate: badged.Certificate) -> None:
        about = certificate.description
        title = heading(_("This service asks for your data"))
        parts: list[Gtk.Widget] = [title]
        who = [label(foreign.line(about.subject_name) or _("A service without a name"), "service-name")]
        if about.subject_url:
            who.append(label(foreign.address(about.subject_url)))
        parts.append(section(_("Service"), who))
        if about.purpose:
            parts.append(section(_("Purpose"), [passage(about.purpose)]))
        if rights.transaction_info:
            parts.append(section(_("Message of the service"), [passage(rights.transaction_info)]))
        required = [label("\N{BULLET} " + texts.right(name, rights.aux)) for name in rights.chat.required]
        if required or not rights.chat.optional:
            parts.append(section(_("The service needs"), required or [label(_("No data"))]))
        switches: dict[str, Gtk.Switch] = {}
        rows: list[Gtk.Widget] = []
        for name in rights.chat.optional:
            row, switches[name] = switch(texts.right(name, rights.aux), name in rights.chat.effective)
            rows.append(row)
        if rows:
            parts.append(section(_("You can choose"), rows))
        if about.terms_of_usage:
            terms = about.terms_of_usage
            parts.append(expander(_("Terms of the service"), lambda: long_text(foreign.lines(terms))))
        parts.append(expander(_("Certificate of the service"), lambda: self._certificate(certificate)))

        def agree() -> None:
            chosen = [name for name, widget in switches.items() if widget.get_active()]
            self._answer(list(rights.chat.required) + chosen)

        refuse = button(_("_Refuse"), lambda: self._answer(None))
        content = page(column(*parts, spacing=18), refuse, button(_("_Agree"), agree, "suggested-action"))
        self._show_anew("consent", title, content)

    def _certificate(self, certificate: badged.Certificate) -> Gtk.Widget:
        about, validity = certificate.description, certificate.validity
        rows = [
            (_("Service"), about.subject_name),
            (_("Web address"), about.subject_url),
            (_("Issuer"), about.issuer_name),
            (_("Web address of the issuer"), about.issuer_url),
            (_("Valid"), f"{texts.date(validity.effective_date)} \N{EN DASH} {texts.date(validity.expiration_date)}"),
        ]
        parts = []
        for name, value in rows:
            parts.append(column(label(name, "small"), passage(value), spacing=0))
        return column(*parts, spacing=6)

    # View, called on the thread of the dialogue

    def connected(self, state: State) -> None:
        def show() -> None:
            self._state = state
            if not self._is_busy and self._shown in ("waiting", "main", "disconnected"):
                self._show_main()

        GLib.idle_add(show)

    def disconnected(self, why: Ending) -> None:
        def show() -> None:
            self._state = None
            if self._shown == "end":
                return
            self._is_busy = False
            self._show_ending("disconnected", why, [button(_("_Look again"), self.session.refresh)])

        GLib.idle_add(show)

    def begin(self, title: str, text: str) -> None:
        def show() -> None:
            self._is_busy = True
            name = heading(title)
            self._says = label(text)
            self._bar = Gtk.ProgressBar(visible=False)
            self._bar.update_property([Gtk.AccessibleProperty.LABEL], [_("Progress")])
            self._spinner = Gtk.Spinner(width_request=32, height_request=32, halign=Gtk.Align.START, spinning=True)
            self._continue = button(_("_Continue"), lambda: self._answer(True), "suggested-action")
            self._continue.set_visible(False)
            parts = column(name, self._says, self._spinner, self._bar, spacing=18)
            self._progress = page(parts, button(_("_Cancel"), self._stop), self._continue)
            self._title = name
            self._show_anew("progress", name, self._progress)

        GLib.idle_add(show)

    def progress(self, text: str, percent: int | None, *, notify: bool = False) -> None:
        GLib.idle_add(self._say, text, percent, notify)

    def _say(self, text: str, percent: int | None, notify: bool, waits: bool = False) -> None:
        if not self._is_busy:
            return
        if self._shown != "progress":
            self._show_anew("progress", self._title, self._progress)
        self._question = self._question if waits else None
        self._says.set_text(text)
        if hasattr(self._says, "announce"):
            self._says.announce(text, Gtk.AccessibleAnnouncementPriority.MEDIUM)
        self._bar.set_visible(percent is not None)
        self._bar.set_fraction((percent or 0) / 100)
        self._spinner.set_spinning(percent is not None or not notify and not waits)
        self._spinner.set_visible(self._spinner.get_spinning())
        self._continue.set_visible(waits)
        if notify and not self.is_active():
            self._notify(text)

    def consent(self, rights: badged.AccessRights, certificate: badged.Certificate) -> asyncio.Future[list[str] | None]:
        future = self.session.future()

        def show() -> None:
            self._question = (future, None)
            self._consent_page(rights, certificate)
            self.come(_("A service asks for your data."))

        GLib.idle_add(show)
        return future

    def pause(self, text: str) -> asyncio.Future[bool]:
        future = self.session.future()

        def show() -> None:
            self._question = (future, False)
            self._say(text, None, True, waits=True)
            self._continue.grab_focus()

        GLib.idle_add(show)
        return future

    def end(self, ending: Ending, url: str | None, succeeded: bool) -> None:
        def show() -> None:
            self._is_busy = False
            self._question = None
            # Only web addresses: another one could start any program.
            back = url if url is not None and url.lower().startswith(("https://", "http://")) else None
            buttons = [button(_("_Close"), self._close_ending, "suggested-action")]
            if back is not None and not succeeded:
                buttons.insert(0, button(_("_Back to the service"), lambda: self._open(back)))
            self._show_ending("end", ending, buttons)
            if back is not None and succeeded:
                self._open(back)
            if not self.is_active():
                self._notify(ending.title)

        GLib.idle_add(show)

    def ask_for_attention(self) -> None:
        GLib.idle_add(self.come, _("A browser asks you to prove your identity."))

    # Helpers of the view

    def _show_ending(self, name: str, ending: Ending, buttons: list[Gtk.Button]) -> None:
        title = heading(ending.title)
        parts = [title, *(label(text) for text in (ending.text, ending.remedy) if text)]
        self._show_anew(name, title, page(column(*parts, spacing=18), *buttons))
        if buttons:
            self.set_default_widget(buttons[-1])

    def _close_ending(self) -> None:
        if self._state is None:
            self._show("waiting", page(column(heading(_("ID card online")), label(_("badged is being looked for.")))))
            return
        self._show_main()

    def _open(self, address: str) -> None:
        try:
            Gio.AppInfo.launch_default_for_uri(address, None)
        except GLib.Error:
            text = _("No browser could be started. Open this address yourself:")
            address_label = label(foreign.line(address, 2000), "monospace")
            address_label.set_selectable(True)
            title = heading(_("The browser is missing"))
            self._show_anew(
                "end", title, page(column(title, label(text), address_label), button(_("_Close"), self._close_ending))
            )

    def _notify(self, text: str) -> None:
        application = self.get_application()
        if application.get_is_registered() and application.get_dbus_connection() is not None:
            notification = Gio.Notification.new(_("ID card online"))
            notification.set_body(text)
            application.send_notification("state", notification)

    def come(self, text: str = "") -> None:
        """Brings the window to the front. `text`: why, for a notification if that fails."""
        self.set_visible(True)
        Gtk.Window.present(self)
        if text and not self.is_active():
            self._notify(text)
