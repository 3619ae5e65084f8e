# SPDX-License-Identifier: GPL-3.0-or-later
"""The dialogue with badged, on a thread with an event loop of its own. The window is told, and asked, by `View`.

The connection goes through `badgectl send --pinentry`: that program asks for PIN, CAN and PUK with pinentry, and gives
them to badged. No secret is in the memory of this program.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import socket
import threading
from collections.abc import Coroutine
from typing import Any, Protocol

import badged

from . import foreign, texts
from .language import _
from .texts import Ending

#: Seconds without an answer. A question with pinentry is a command, too; badged itself ends it earlier.
PATIENCE = 24 * 3600.0
#: How often the card of a virtual reader is put in. A card with faults may leave each time.
MAXIMUM_INSERTIONS = 3
#: The exit code of badgectl for a user who may not connect.
NO_RIGHT = 4
#: Seconds until the next try to connect, after the first and after the last one.
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class View(Protocol):
    """What the dialogue needs of the window. All methods are called on the thread of the dialogue."""

    def connected(self, state: State) -> None:
        """badged answers; or what is known of it has changed."""

    def disconnected(self, why: Ending) -> None:
        """badged does not answer."""

    def begin(self, title: str, text: str) -> None:
        """A workflow has begun."""

    def progress(self, text: str, percent: int | None, *, notify: bool = False) -> None:
        """What the workflow does, or what the user must do. `notify`: also if the window is hidden."""

    def consent(self, rights: badged.AccessRights, certificate: badged.Certificate) -> asyncio.Future[list[str] | None]:
        """Asks for consent. The result is the optional rights that the user gives, or None."""

    def pause(self, text: str) -> asyncio.Future[bool]:
        """Shows a text until the user goes on."""

    def end(self, ending: Ending, url: str | None, succeeded: bool) -> None:
        """A workflow has ended. `url` is where the browser continues."""

    def ask_for_attention(self) -> None:
        """A browser wants the window."""


class State:
    """What is known of badged and of the readers."""

    def __init__(self) -> None:
        self.readers: list[badged.Reader] = []
        #: Whether this program is the one that browsers reach; None: this user may not be it.
        self.is_in_use: bool | None = None
        #: Whether badged serves browsers at all.
        self.serves_browsers = False
        self.faults: list[str] = []
        #: The service that shows the data of the own card; None: there is none.
        self.self_address: str | None = None


class Session:
    """The dialogue with badged, over restarts of badged."""

    def __init__(self, view: View, badgectl: str = "badgectl") -> None:
        self.view = view
        self._badgectl = badgectl
        self._loop = asyncio.new_event_loop()
        self._daemon: badged.AsyncDaemon | None = None
        self._workflow: Dialogue | None = None
        self._links: list[str] = []
        #: Ends the pause before the next try to connect.
        self._again = asyncio.Event()
        self.state = State()

    # Calls from the thread of the window

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._run, daemon=True).start()

    def log_in(self, link: str) -> None:
        """Starts the login of a link, as soon as badged answers."""
        self._call(self._log_in(link))

    def show_own_data(self) -> None:
        """Reads the own card by the service that badged.conf names."""
        if self.state.self_address is not None:
            self._call(self._authenticate(self.state.self_address))

    def change_pin(self) -> None:
        """Changes the PIN."""
        self._call(self._change_pin(False))

    def unblock(self) -> None:
        """Unblocks the PIN with the PUK, and changes nothing."""
        self._call(self._change_pin(True))

    def cancel(self) -> None:
        """Cancels the workflow, if there is one."""

        def cancel() -> None:
            if self._workflow is not None:
                self._workflow.cancel()

        self._loop.call_soon_threadsafe(cancel)

    def refresh(self) -> None:
        """Looks again at what works."""
        self._loop.call_soon_threadsafe(self._again.set)
        self._call(self._look())

    def answer(self, future: asyncio.Future[Any], value: object) -> None:
        """Answers a question of the dialogue."""

        def answer() -> None:
            if not future.done():
                future.set_result(value)

        self._loop.call_soon_threadsafe(answer)

    def future(self) -> asyncio.Future[Any]:
        """A question to the window."""
        return self._loop.create_future()

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    # The thread of the dialogue

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve_for_ever())

    async def _serve_for_ever(self) -> None:
        failures = 0
        while True:
            was_connected, status = await self._serve()
            failures = 0 if was_connected else failures
            self.view.disconnected(texts.no_connection(status))
            # Without the program or the right to connect, time changes nothing.
            pause = None if status in (None, NO_RIGHT) else PAUSES[min(failures, len(PAUSES) - 1)]
            self._again.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), pause)
            failures += 1

    async def _serve(self) -> tuple[bool, int | None]:
        """Serves one connection to its end. Returns whether badged has answered, and the exit code of badgectl."""
        program = shutil.which(self._badgectl)
        if program is None:
            return False, None
        near, far = socket.socketpair()
        with near, far:
            child = await asyncio.create_subprocess_exec(
                program,
                "send",
                "--pinentry",
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=asyncio.subprocess.DEVNULL,
            )
            far.close()
            has_answered = False
            try:
                async with badged.connect_async(timeout=PATIENCE, connected=near) as daemon:
                    await daemon.get_info()
                    has_answered = True
                    await self._use(daemon)
            except* badged.BadgedError:
                # The exit code of badgectl says why.
                pass
            finally:
                self._daemon = None
                near.close()
            return has_answered, await child.wait()

    async def _use(self, daemon: badged.AsyncDaemon) -> None:
        self._daemon = daemon
        self.state = State()
        with contextlib.suppress(badged.CommandError):
            self.state.is_in_use = (await daemon.set_user_interface(True)).active
        await self._look()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(daemon))
            group.create_task(self._serve_browsers(daemon))
            for link in self._links:
                group.create_task(self._log_in(link))
            self._links.clear()

    async def _look(self) -> None:
        """Finds out what works."""
        daemon = self._daemon
        if daemon is None:
            return
        with contextlib.suppress(badged.CommandError):
            health = await daemon.get_health()
            self.state.faults = texts.faults(health)
            self.state.serves_browsers = any(check.name == "browserPort" and check.ok for check in health.checks)
        with contextlib.suppress(badged.CommandError):
            self.state.readers = list((await daemon.get_reader_list()).readers)
        address = (await daemon.request("FIND_SERVICE")).raw.get("tcTokenURL")
        self.state.self_address = address if isinstance(address, str) else None
        self.view.connected(self.state)

    async def _watch(self, daemon: badged.AsyncDaemon) -> None:
        async for event in daemon.events():
            if isinstance(event, badged.Reader):
                others = [reader for reader in self.state.readers if reader.name != event.name]
                self.state.readers = sorted(others + [event] * event.attached, key=lambda reader: reader.name)
                self.view.connected(self.state)
            elif isinstance(event, badged.UserInterface):
                self.state.is_in_use = event.active
                self.view.connected(self.state)
            elif isinstance(event, badged.ShowUI):
                self.view.ask_for_attention()
        raise badged.ConnectionEnded("CLOSED", "badgectl has ended", "")

    async def _serve_browsers(self, daemon: badged.AsyncDaemon) -> None:
        while True:
            workflow = await daemon.next_authentication()
            self.view.ask_for_attention()
            await Dialogue(self, daemon, workflow, "auth", has_browser=True).run()

    # Workflows

    async def _log_in(self, link: str) -> None:
        daemon = self._daemon
        if daemon is None or self._workflow is not None:
            # The last link counts; it waits for badged, or for the end of the workflow.
            self._links = [link]
            return
        address = (await daemon.request("FIND_SERVICE", {"link": link})).raw.get("tcTokenURL")
        if isinstance(address, str):
            await self._authenticate(address)
        else:
            self.view.end(texts.failure("Parse_TcToken_Invalid_Url", False), None, False)

    async def _authenticate(self, address: str) -> None:
        if self._daemon is not None and self._workflow is None:
            await Dialogue(self, self._daemon, self._daemon.authenticate(address), "auth").run()

    async def _change_pin(self, only_unblocks: bool) -> None:
        if self._daemon is not None and self._workflow is None:
            kind = "unblock" if only_unblocks else "change"
            await Dialogue(self, self._daemon, self._daemon.change_pin(), kind).run()

    def began(self, dialogue: Dialogue) -> None:
        """A workflow is running."""
        self._workflow = dialogue

    def ended(self) -> None:
        """No workflow is running."""
        self._workflow = None
        if self._links and self._daemon is not None:
            self._call(self._log_in(self._links.pop()))


class Dialogue:
    """One workflow, from its first message to its end."""

    def __init__(
        self,
        session: Session,
        daemon: badged.AsyncDaemon,
        workflow: badged.AsyncWorkflow[Any],
        kind: str,
        has_browser: bool = False,
    ) -> None:
        self._session = session
        self._view = session.view
        self._daemon = daemon
        self._workflow = workflow
        #: `auth`, `change` or `unblock`.
        self._kind = kind
        #: Whether a browser waits for the end, and continues by itself.
        self._has_browser = has_browser
        self._question: asyncio.Task[None] | None = None
        #: The last ASK_SECRET.
        self._asked: asyncio.Task[badged.Message] | None = None
        self._insertions = 0
        #: The kind of the value that was sent to the open card and is not judged yet; empty: there is none.
        self._last = ""
        #: Whether a card has left before it answered to a value.
        self._was_void = False
        self._has_agreed = False
        self._can_open = False
        self._service = ""
        #: Ends the dialogue in another way than the workflow does.
        self._ending: Ending | None = None
        self._succeeds = False

    def cancel(self) -> None:
        """Cancels the workflow."""
        self._workflow.cancel()

    async def run(self) -> None:
        """Runs the workflow, and shows its end."""
        self._session.began(self)
        url: str | None = None
        succeeded = False
        try:
            if self._kind == "auth":
                self._view.begin(_("Log in with the ID card"), texts.step(0))
            else:
                title = _("Unblock the PIN") if self._kind == "unblock" else _("Change the PIN")
                self._view.begin(title, _("The card is being looked for."))
            async for event in self._workflow:
                if not isinstance(event, badged.Status):
                    await self._hear_outcome()
                self._take(event)
            succeeded = True
            result = self._workflow.result
            if isinstance(result, badged.Auth):
                ending = texts.authenticated(result)
                url = result.url
            else:
                text = _("The new PIN is valid from now on.")
                ending = Ending(_("The PIN is changed"), text, _("You can take the card off the reader."))
        except badged.WorkflowFailed as error:
            ending = texts.failure(error.code, self._kind != "auth")
            if isinstance(error.message, dict) and self._kind == "auth":
                url = error.message.get("url")
                ending = self._with_sent(ending, error.message)
        except badged.CommandError as error:
            denied = isinstance(error, badged.AccessDenied)
            ending = texts.failure("Access_Denied" if denied else "Get_TcToken_Invalid_Url", self._kind != "auth")
        except badged.BadgedError:
            await self._hear_outcome()
            ending = texts.no_connection(3)
            if self._last == "NEW_PIN":
                ending = texts.unknown_pin(_("badged ended during the change."))
            if self._has_agreed:
                text = _("The service may have received the data that you have agreed to.")
                ending = ending._replace(text=ending.text + " " + text)
        finally:
            self._ask(None)
            self._session.ended()
        if self._ending is not None and not succeeded:
            ending = self._ending
            succeeded = self._succeeds
        self._view.end(ending, None if self._has_browser or not isinstance(url, str) else url, succeeded)

    def _with_sent(self, ending: Ending, message: dict[str, Any]) -> Ending:
        rights = [name for name in message.get("rights") or [] if isinstance(name, str)]
        text = texts.sent(message.get("sent"), rights, self._has_agreed)
        return ending._replace(text=f"{ending.text} {text}".strip())

    def _ask(self, question: Coroutine[Any, Any, None] | None) -> None:
        """Begins a question. The one before is over."""
        if self._question is not None:
            self._question.cancel()
        self._question = None if question is None else asyncio.get_running_loop().create_task(self._end_well(question))

    @staticmethod
    async def _end_well(question: Coroutine[Any, Any, None]) -> None:
        # The end of the connection ends the workflow, too, which says so.
        with contextlib.suppress(badged.BadgedError):
            await question

    async def _hear_outcome(self) -> None:
        """Waits for what has become of the last value.

        badgectl may tell that after the next message of badged, which ends the question.
        """
        if self._asked is not None:
            await asyncio.wait({self._asked}, timeout=1)

    def _note_outcome(self, kind: str, asked: asyncio.Task[badged.Message]) -> None:
        if not asked.cancelled() and asked.exception() is None and asked.result().raw.get("outcome") == "sent":
            self._last = kind

    def _take(self, event: badged.Message) -> None:
        match event:
            case badged.Status(progress=int(percent)) if self._kind == "auth" and self._has_agreed:
                self._view.progress(texts.step(percent), percent)
            case badged.AccessRights():
                self._ask(self._consent(event))
            case badged.InsertCard():
                self._was_void = self._was_void or bool(self._last)
                self._last = ""
                self._ask(self._need_card(event))
            case badged.Pause():
                self._ask(self._pause(event))
            case badged.SecretPrompt():
                self._ask(self._secret(event))

    async def _consent(self, rights: badged.AccessRights) -> None:
        certificate = await self._daemon.get_certificate()
        granted = await self._view.consent(rights, certificate)
        if granted is None:
            self._workflow.cancel()
            return
        self._has_agreed = True
        self._can_open = "CanAllowed" in granted
        # pinentry shows no marks of direction; the name is in a line of its own there.
        self._service = foreign.line(certificate.description.subject_name, 80)
        self._view.progress(_("The card is being looked for."), None)
        rights.accept([name for name in granted if name in rights.chat.optional])

    async def _need_card(self, event: badged.InsertCard) -> None:
        if event.error is not None:
            self._view.progress(texts.obstacle(event), None, notify=True)
            return
        readers = (await self._daemon.get_reader_list()).readers
        virtual = [reader for reader in readers if reader.insertable and reader.card is None]
        others = [reader for reader in readers if reader.card is not None and not reader.insertable]
        if virtual and not others and self._insertions < MAXIMUM_INSERTIONS:
            self._insertions += 1
            self._workflow.insert_card(virtual[0].name)
        elif not readers:
            self._view.progress(_("Connect a card reader to this computer."), None, notify=True)
        else:
            self._view.progress(_("Put your ID card on the reader."), None, notify=True)

    async def _pause(self, pause: badged.Pause) -> None:
        if await self._view.pause(_("The card was lost several times. Place it better, then go on.")):
            pause.accept()

    async def _secret(self, prompt: badged.SecretPrompt) -> None:
        words = texts.question(prompt, self._can_open, self._kind != "auth")
        last, was_void = self._last, self._was_void
        self._last, self._was_void = "", False
        if self._kind == "unblock" and words.kind != "PUK":
            # The workflow of badged would go on to change the PIN.
            self._succeeds = last == "PUK"
            self._ending = texts.unblocked() if self._succeeds else texts.not_blocked()
            self._workflow.cancel()
            return
        said = texts.last_value(last, was_void, words.kind)
        if prompt.error is not None:
            said = texts.unjudged(prompt.unanswered)
        need = f"{said} {words.need}".strip()
        if prompt.is_typed_at_reader:
            if said and not await self._view.pause(need):
                return
            name = foreign.quoted(prompt.reader.name if prompt.reader else "")
            on_keypad = _("Type it on the keypad of the reader {reader}.", reader=name)
            self._view.progress(f"{words.need} {on_keypad}", None, notify=True)
            self._last = words.kind
            prompt.answer()
            return
        self._view.progress(
            _("Please type in the window that has opened: {what}.", what=words.label), None, notify=True
        )
        description = need
        if self._service:
            description += "\n\n" + _("For: {service}", service=self._service)
        request = self._daemon.request(
            "ASK_SECRET",
            {
                "kind": words.kind,
                "question": prompt.question,
                "digits": list(words.digits),
                "title": _("ID card"),
                "description": description,
                "prompt": words.label + ":",
                "advice": words.advice,
                "again": _("Repeat the new PIN:"),
                "different": _("The two values are different."),
                "ok": _("Continue"),
                "cancel": _("Cancel"),
                "show": _("Show what is typed"),
                "hide": _("Hide what is typed"),
            },
        )
        self._asked = asyncio.get_running_loop().create_task(request)
        self._asked.add_done_callback(functools.partial(self._note_outcome, words.kind))
        # The outcome counts also if the question is over.
        answer = await asyncio.shield(self._asked)
        match answer.raw.get("outcome"):
            case "sent":
                self._view.progress(texts.checking(words.kind), None)
            case "cancelled":
                self._workflow.cancel()
            case "failed" | "invalid":
                self._ending = texts.no_pinentry()
                self._workflow.cancel()
