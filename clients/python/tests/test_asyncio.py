# SPDX-License-Identifier: Apache-2.0
"""The API for asyncio with badged and its virtual cards."""

from __future__ import annotations

import asyncio
import socket
import unittest
from typing import ClassVar

from support import LIMIT, Conversation, Fake, Process

import badged

PIN, NEW_PIN = b"123456", b"654321"


class WithDaemon(unittest.IsolatedAsyncioTestCase):
    process: ClassVar[Process]

    @classmethod
    def setUpClass(cls) -> None:
        cls.process = Process(readers=2)
        cls.addClassCleanup(cls.process.end)

    async def asyncSetUp(self) -> None:
        self.daemon = await badged.connect_async(self.process.socket, timeout=LIMIT)
        self.addAsyncCleanup(self.daemon.__aexit__, None, None, None)

    async def change(self, daemon: badged.AsyncDaemon, reader: str) -> badged.ChangePin:
        """Changes the PIN of a new card in this reader."""
        change = daemon.change_pin(reader=reader)
        async for event in change:
            match event:
                case badged.InsertCard():
                    change.insert_card(reader, {"kind": "eid"})
                case badged.EnterPin():
                    event.answer(bytearray(PIN))
                case badged.EnterNewPin():
                    event.answer(bytearray(NEW_PIN))
        return change.result

    async def test_commands_run_side_by_side(self) -> None:
        info, health, readers = await asyncio.gather(
            self.daemon.get_info(), self.daemon.get_health(), self.daemon.get_reader_list()
        )
        self.assertTrue(info.version and health.checks)
        self.assertEqual([reader.name for reader in readers.readers], ["Simulator", "Simulator 2"])

    async def test_two_workflows_on_two_connections(self) -> None:
        async with badged.connect_async(self.process.socket) as other:
            results = await asyncio.gather(self.change(self.daemon, "Simulator"), self.change(other, "Simulator 2"))
        self.assertEqual([result.success for result in results], [True, True])

    async def test_a_coroutine_is_a_handler(self) -> None:
        change = self.daemon.change_pin()

        async def user(event: badged.Message) -> object:
            await asyncio.sleep(0)
            match event:
                case badged.InsertCard():
                    change.insert_card(card={"kind": "eid"})
                case badged.EnterPin():
                    return bytearray(PIN)
                case badged.EnterNewPin():
                    return bytearray(NEW_PIN)
            return None

        self.assertTrue((await change.run(user)).success)

    async def test_cancelling_the_task_sends_cancel(self) -> None:
        """Whether the task waits for a message, for a handler, or in the body of a loop."""
        waits = asyncio.Event()

        async def loop() -> None:
            async for event in self.daemon.change_pin():
                if isinstance(event, badged.InsertCard):
                    waits.set()

        async def body() -> None:
            async with self.daemon.change_pin() as change:
                async for event in change:
                    if isinstance(event, badged.InsertCard):
                        waits.set()
                        await asyncio.Event().wait()

        async def handler() -> None:
            async def user(event: badged.Message) -> object:
                if isinstance(event, badged.InsertCard):
                    waits.set()
                    await asyncio.Event().wait()
                return None

            await self.daemon.change_pin().run(user)

        for function in (loop, body, handler):
            with self.subTest(function.__name__):
                waits.clear()
                task = asyncio.create_task(function())
                await waits.wait()
                self.assertEqual((await self.daemon.get_status()).workflow, "CHANGE_PIN")
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # badged executes the lines in order, so the workflow is cancelled before this one runs.
                self.assertTrue((await self.change(self.daemon, "Simulator")).success)

    async def test_a_time_limit_round_a_workflow(self) -> None:
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(0.05):
                async for _ in self.daemon.change_pin():
                    pass
        self.assertTrue((await self.change(self.daemon, "Simulator")).success)

    async def test_events_and_a_card(self) -> None:
        async def first() -> str:
            async for event in self.daemon.events():
                if isinstance(event, badged.Reader) and event.card is not None:
                    return event.name
            return ""

        event = asyncio.create_task(first())
        card = asyncio.create_task(self.daemon.wait_for_card("eid", reader="Simulator 2", timeout=LIMIT))
        async with badged.connect_async(self.process.socket) as other:
            change = other.change_pin(reader="Simulator 2")
            async with change:
                # While the iterator lives, leaving the loop does not cancel the workflow.
                messages = aiter(change)
                async for message in messages:
                    if isinstance(message, badged.InsertCard):
                        change.insert_card("Simulator 2", {"kind": "eid", "retryCounter": 2})
                    elif isinstance(message, badged.EnterPin):
                        break
                found = (await card).card
                self.assertIsInstance(found, badged.EIDCard)
                assert isinstance(found, badged.EIDCard)
                self.assertEqual(found.retry_counter, 2)
                self.assertEqual(await event, "Simulator 2")
        with self.assertRaises(badged.NoAnswer):
            await self.daemon.wait_for(badged.Credential, timeout=0.01)

    async def test_closing_ends_what_waits(self) -> None:
        async def all_events() -> int:
            return len([event async for event in self.daemon.events()])

        task = asyncio.create_task(all_events())
        workflow = asyncio.create_task(self.daemon.change_pin().run(lambda event: None))
        await self.daemon.get_info()
        self.daemon.close()
        self.assertGreater(await task, 0)
        with self.assertRaises(badged.ConnectionEnded):
            await workflow
        with self.assertRaises(badged.ConnectionEnded):
            await self.daemon.get_info()

    async def test_without_badged(self) -> None:
        with self.assertRaises(badged.ConnectError) as caught:
            await badged.connect_async("/nowhere/badged.sock")
        self.assertEqual(caught.exception.code, "NOT_RUNNING")

    async def test_connections_come_back(self) -> None:
        process = Process()
        self.addCleanup(process.end)
        count = 0
        async for daemon in badged.connections_async(process.socket, timeout=LIMIT):
            await daemon.get_info()
            count += 1
            if count == 2:
                break
            await asyncio.to_thread(process.stop)
            with self.assertRaises(badged.ConnectionEnded):
                [event async for event in daemon.events()]
            await asyncio.to_thread(process.start)
        self.assertEqual(count, 2)


class Browsers(unittest.IsolatedAsyncioTestCase):
    async def test_an_authentication_that_a_browser_starts(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.answer(msg="USER_INTERFACE", active=True)
            # Both come at once, before the program takes the authentication.
            talk.send({"msg": "SHOW_UI", "module": ""}, {"msg": "AUTH"})
            talk.send({"msg": "ACCESS_RIGHTS", "chat": {"required": ["GivenNames"], "optional": [], "effective": []}})
            assert talk.next()["cmd"] == "ACCEPT"
            talk.send({"msg": "AUTH", "result": {"major": "x#ok"}, "url": "https://example.org", "sent": "read"})
            talk.until_closed()

        with Fake(serve) as fake:
            async with badged.connect_async(fake.socket) as daemon:
                self.assertTrue((await daemon.set_user_interface()).active)
                await daemon.wait_for(badged.ShowUI, timeout=LIMIT)
                auth = await daemon.next_authentication(timeout=LIMIT)
                result = await auth.run(lambda event: True)
                self.assertEqual(result.url, "https://example.org")


class Connected(unittest.IsolatedAsyncioTestCase):
    async def test_a_socket_that_is_connected_already(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.until_closed()

        with Fake(serve) as fake, socket.socket(socket.AF_UNIX) as near:
            near.connect(fake.socket)
            async with badged.connect_async(connected=near, timeout=LIMIT) as daemon:
                self.assertIsNone(daemon.ending)
                self.assertEqual(near.gettimeout(), 0)
            self.assertEqual(near.fileno(), -1)


class Choices(unittest.TestCase):
    def test_a_choice_that_badged_refuses_is_not_agreed_to(self) -> None:
        rights = {"msg": "ACCESS_RIGHTS", "chat": {"required": [], "optional": ["Address"], "effective": []}}

        def serve(talk: Conversation) -> None:
            talk.next()
            talk.send({"msg": "AUTH"}, rights)
            assert talk.answer(**rights, error="Entry in 'chat' data is invalid")["cmd"] == "SET_ACCESS_RIGHTS"
            assert [command["cmd"] for command in talk.until_closed()] == ["CANCEL"]

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            with self.assertRaises(badged.CommandError) as caught:
                daemon.authenticate("https://example.org").run(lambda event: ["Address"])
            self.assertIn("Entry in 'chat' data is invalid", caught.exception.text)


if __name__ == "__main__":
    unittest.main()
