# SPDX-License-Identifier: Apache-2.0
"""The blocking API with badged and its virtual cards."""

from __future__ import annotations

import subprocess
import unittest
from typing import Any, ClassVar

from support import BIN, LIMIT, Process

import badged

PIN, NEW_PIN, CAN = b"123456", b"654321", b"500540"
NEW_CARD = {"kind": "eid"}


class WithDaemon(unittest.TestCase):
    CONFIG = ""
    READERS = 1
    process: ClassVar[Process]

    @classmethod
    def setUpClass(cls) -> None:
        cls.process = Process(cls.CONFIG, cls.READERS)
        cls.addClassCleanup(cls.process.end)

    def setUp(self) -> None:
        self.daemon = badged.connect(self.process.socket, timeout=LIMIT)
        self.addCleanup(self.daemon.close)


class Commands(WithDaemon):
    def test_information(self) -> None:
        self.assertRegex(self.daemon.get_info().version, r"^\d+\.\d+")
        self.assertEqual(self.daemon.get_info().badged["protocol"], 1)
        self.assertEqual(self.daemon.get_status().workflow, None)
        self.assertIn("store", [check.name for check in self.daemon.get_health().checks])
        self.assertEqual([reader.name for reader in self.daemon.get_reader_list().readers], ["Simulator"])
        self.assertTrue(self.daemon.get_reader("Simulator").insertable)
        self.assertFalse(self.daemon.get_reader("x").attached)
        self.assertEqual(self.daemon.get_api_level().available, (1, 2, 3))
        self.assertEqual(self.daemon.set_api_level(1).current, 1)
        self.assertEqual([reader.name for reader in self.daemon.get_reader_list().readers], ["Simulator"])

    def test_refusals_have_their_reason(self) -> None:
        with self.assertRaises(badged.CommandError) as caught:
            self.daemon.set_api_level(9)
        self.assertEqual(caught.exception.text, "badged refused SET_API_LEVEL: Unknown level")
        with self.assertRaises(badged.UnknownCommand):
            self.daemon.request("MAKE_COFFEE")
        with self.assertRaises(badged.BadState):
            self.daemon.get_certificate()
        with self.assertRaises(badged.CommandError) as caught:
            self.daemon.mpin_users()
        self.assertEqual(caught.exception.code, "FLOW_ERROR")

    def test_events(self) -> None:
        reader = self.daemon.wait_for(badged.Reader, lambda reader: reader.insertable, timeout=LIMIT)
        self.assertEqual(reader.name, "Simulator")
        with self.assertRaises(badged.NoAnswer):
            self.daemon.wait_for(badged.Credential, timeout=0.01)
        with self.assertRaises(badged.NoAnswer):
            self.daemon.wait_for_card(timeout=0.01)
        self.assertTrue(self.daemon.start_credentials().watching)
        with badged.connect(self.process.socket) as other, other.change_pin() as change:
            # While the iterator lives, leaving the loop does not cancel the workflow.
            messages = iter(change)
            for event in messages:
                if isinstance(event, badged.InsertCard):
                    change.insert_card(card={"kind": "pkoc"})
                    break
            self.assertEqual(self.daemon.wait_for_card("pkoc", timeout=LIMIT).name, "Simulator")
            tap = self.daemon.wait_for(badged.Credential, timeout=LIMIT)
            self.assertTrue(tap.verified)
            self.assertEqual(len(tap.numbers["bits256"]), 64)

    def test_keys(self) -> None:
        with self.assertRaises(badged.CommandError) as caught:
            self.daemon.get_keys()
        self.assertEqual(caught.exception.code, "Endpoint")
        self.daemon.setup_endpoint()
        secret = bytearray(b"hex:" + b"31323334353637383930" * 2)
        key = self.daemon.new_key(secret, protocol="otp", label="door")
        self.assertEqual(secret, bytearray(len(secret)))
        # RFC 4226, appendix D: the first code of this secret.
        self.assertEqual(self.daemon.get_otp(key.id).otp, "755224")
        self.assertEqual(self.daemon.get_otp_counter(key.id).counter, 1)
        pair = self.daemon.new_key(label="pair")
        self.assertEqual({one.label for one in self.daemon.get_keys().keys}, {"door", "pair"})
        self.assertTrue(self.daemon.export_key(pair.id).qr)
        self.assertFalse(self.daemon.deactivate_key(pair.id).active)
        self.daemon.put_data(pair.id, "5F50", "0102")
        self.assertEqual(self.daemon.get_data(pair.id, "5F50").data, "0102")
        self.daemon.delete_key(pair.id)
        with self.assertRaises(badged.CommandError) as caught:
            self.daemon.delete_key(pair.id)
        self.assertEqual(caught.exception.code, "KeyNotFound")
        self.assertTrue(self.daemon.wallet_check().eligible)
        self.daemon.remove_endpoint(True)


class ChangeAPin(WithDaemon):
    def test_a_loop_changes_the_pin(self) -> None:
        change = self.daemon.change_pin(status=False)
        asked = []
        secrets = []
        for event in change:
            match event:
                case badged.InsertCard():
                    change.insert_card(card=NEW_CARD)
                case badged.SecretPrompt():
                    asked.append(str(event))
                    wrong_first = {1: b"111111", 2: b"12", 3: PIN}
                    secrets.append(bytearray(wrong_first.get(len(asked), NEW_PIN)))
                    event.answer(secrets[-1])
                    if len(asked) == 3:
                        self.assertEqual(event.error, "You must provide 5 - 6 digits")
        expected = ["PIN (3 tries left)", "PIN (2 tries left)", "PIN (2 tries left)", "new PIN"]
        self.assertEqual(asked, expected)
        self.assertTrue(change.result.success)
        self.assertTrue(all(not any(secret) for secret in secrets))

    def test_a_handler_changes_the_pin(self) -> None:
        def user(event: badged.Message) -> object:
            match event:
                case badged.InsertCard():
                    change.insert_card(card={**NEW_CARD, "retryCounter": 1})
                case badged.EnterCan():
                    return bytearray(CAN)
                case badged.EnterPin():
                    return bytearray(PIN)
                case badged.EnterNewPin():
                    return bytearray(NEW_PIN)
            return None

        change = self.daemon.change_pin()
        self.assertTrue(change.run(user).success)

    def test_a_keypad_takes_the_values(self) -> None:
        change = self.daemon.change_pin()

        def user(event: badged.Message) -> object:
            if isinstance(event, badged.InsertCard):
                change.insert_card(card={**NEW_CARD, "keypad": True})
            return None

        self.assertTrue(change.run(user).success)

    def test_no_answer_cancels(self) -> None:
        change = self.daemon.change_pin()

        def user(event: badged.Message) -> object:
            if isinstance(event, badged.InsertCard):
                change.insert_card(card=NEW_CARD)
            return None

        with self.assertRaises(badged.WorkflowFailed) as caught:
            change.run(user)
        self.assertEqual(caught.exception.code, "User_Cancelled")
        self.assertEqual(caught.exception.message["success"], False)
        with self.assertRaises(badged.WorkflowFailed):
            _ = change.result

    def test_leaving_the_loop_cancels_and_the_next_workflow_waits_for_that(self) -> None:
        for _ in range(20):
            for event in self.daemon.change_pin():
                if isinstance(event, badged.InsertCard):
                    break
        with self.assertRaises(RuntimeError), self.daemon.change_pin() as change:
            for _ in change:
                raise RuntimeError
        with self.assertRaises(RuntimeError):
            self.daemon.change_pin().run(self.fails)
        self.test_a_handler_changes_the_pin()

    def fails(self, event: badged.Message) -> object:
        raise RuntimeError

    def test_a_second_workflow_is_an_error_and_does_not_disturb_the_first(self) -> None:
        with self.daemon.change_pin() as change:
            events = iter(change)
            next(events)
            with self.assertRaises(badged.WorkflowRunning):
                next(iter(self.daemon.change_pin()))
            self.assertEqual(self.daemon.get_status().workflow, "CHANGE_PIN")

    def test_a_refused_start_is_an_error(self) -> None:
        with self.assertRaises(badged.CommandError) as caught:
            self.daemon.authenticate("http").run(self.fails)
        self.assertIn("Validation of tcTokenURL failed", caught.exception.text)
        with self.assertRaises(badged.BadState), badged.connect(self.process.socket) as other:
            other.send("RUN_CHANGE_PIN")
            other.change_pin().run(lambda event: None)


class Wallet(WithDaemon):
    def test_a_new_card_is_set_up_and_signs(self) -> None:
        words: tuple[str, ...] = ()

        def user(event: badged.Message) -> object:
            nonlocal words
            match event:
                case badged.InsertCard():
                    flow.insert_card(card={"kind": "keycard", "initialised": False})
                case badged.EnterPin() | badged.EnterNewPin():
                    return bytearray(b"246802")
                case badged.EnterNewPuk():
                    return bytearray(b"314159265358")
                case badged.ShowPaperWallet():
                    words = event.mnemonics
                    return True
                case badged.EnterWords():
                    return bytearray(" ".join(words[place - 1] for place in event.positions).encode())
                case badged.RegisterDevice():
                    return {"address": event.api_params["address"]}
                case badged.ConsentPrompt():
                    return True
            return None

        flow = self.daemon.run_wallet("SETUP_DEVICE", {"userId": "u"})
        entity = flow.run(user).context_entity
        self.assertEqual((entity.entity_type, entity.entity["status"]), ("device", "REGISTERED"))
        self.assertEqual(len(words), 12)

        def signer(event: badged.Message) -> object:
            if isinstance(event, badged.InsertCard):
                flow.insert_card()
                return None
            return user(event)

        flow = self.daemon.run_wallet("ACTIVATE_USER", {"challenge": "a text"})
        self.assertRegex(flow.run(signer).context_entity.entity["signature"], "^0x[0-9a-f]{130}$")
        with self.assertRaises(badged.WorkflowFailed) as caught:
            self.daemon.run_wallet("GET_DEVICE_MNEMONICS").run(user)
        self.assertEqual(caught.exception.code, "MNEMONICS_NOT_STORED")
        with self.assertRaises(badged.WorkflowFailed) as caught:
            self.daemon.wallet_sign("x").run(user)
        self.assertEqual(caught.exception.code, "10004")


class Authenticate(unittest.TestCase):
    def setUp(self) -> None:
        self.process = Process()
        self.addCleanup(self.process.end)
        anchors = self.process.folder / "anchors"
        (anchors / "test").mkdir(parents=True)
        self.server = subprocess.Popen(
            [BIN / "badged-eidserver", "--out", anchors / "test"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(self.end_server)
        assert self.server.stdout is not None
        self.url = next(line.strip() for line in self.server.stdout if line.startswith("https"))
        self.process.stop()
        with open(self.process.folder / "badged.conf", "a") as file:
            file.write(f"[eid]\ntrust_anchors = {anchors}\n")
        self.process.start()

    def end_server(self) -> None:
        self.server.terminate()
        self.server.wait(LIMIT)
        assert self.server.stdout is not None
        self.server.stdout.close()

    def test_an_authentication_with_chosen_rights(self) -> None:
        with badged.connect(self.process.socket, timeout=LIMIT) as daemon:
            states: list[Any] = []
            auth = daemon.authenticate(self.url)
            chosen: list[str] = []
            for event in auth:
                match event:
                    case badged.AccessRights():
                        self.assertTrue(daemon.get_certificate().description.subject_name)
                        with self.assertRaises(ValueError):
                            event.accept(["WriteAddress"])
                        chosen = list(event.chat.optional[:1])
                        event.accept(chosen)
                    case badged.InsertCard():
                        auth.insert_card(card=NEW_CARD)
                    case badged.EnterPin():
                        event.answer(bytearray(PIN))
                    case badged.Status():
                        states.append(event.progress)
            self.assertTrue((auth.result.url or "").endswith("ResultMajor=ok"), auth.result.url)
            self.assertEqual(auth.result.sent, "read")
            self.assertTrue(set(chosen) <= set(auth.result.rights))
            self.assertIn(60, states)

            with self.assertRaises(badged.WorkflowFailed) as caught:
                daemon.authenticate(self.url + "?fault=tctoken-huge").run(lambda event: None)
            self.assertTrue(caught.exception.code.startswith("Get_TcToken_"), caught.exception.code)
            self.assertTrue(caught.exception.text)
            with self.assertRaises(badged.WorkflowFailed) as caught:
                daemon.authenticate(self.url).run(lambda event: False)
            self.assertEqual(caught.exception.code, "User_Cancelled")
            self.assertEqual(caught.exception.message["sent"], "none")


class Connections(unittest.TestCase):
    def test_without_badged(self) -> None:
        with self.assertRaises(badged.ConnectError) as caught:
            badged.connect("/nowhere/badged.sock")
        self.assertEqual(caught.exception.code, "NOT_RUNNING")
        self.assertIn("/nowhere/badged.sock", caught.exception.text)
        self.assertIn("systemctl start badged", caught.exception.advice)
        with self.assertRaises(badged.ConnectError) as caught:
            badged.connect("/" + "x" * 200)
        self.assertEqual(caught.exception.code, "INVALID_PATH")

    def test_connections_come_back_after_a_restart(self) -> None:
        process = Process()
        self.addCleanup(process.end)
        for number, daemon in enumerate(badged.connections(process.socket, timeout=LIMIT)):
            self.assertEqual(daemon.wait_for(badged.Reader, timeout=LIMIT).name, "Simulator")
            if number == 1:
                break
            process.stop()
            with self.assertRaises(badged.ConnectionEnded):
                list(daemon.events())
            with self.assertRaises(badged.ConnectionEnded):
                daemon.get_info()
            process.start()

    def test_a_workflow_ends_with_its_connection(self) -> None:
        process = Process()
        self.addCleanup(process.end)
        with badged.connect(process.socket, timeout=LIMIT) as daemon:
            change = daemon.change_pin()
            with self.assertRaises((badged.WorkflowFailed, badged.ConnectionEnded)):
                for event in change:
                    if isinstance(event, badged.InsertCard):
                        process.process.kill()
            self.assertTrue(change.is_over)
            process.process.wait(LIMIT)
        process.start()


if __name__ == "__main__":
    unittest.main()
