// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import ReadersVirtual
import Server
import Testing
import Text
import VirtualEID

private func read(_ text: String) throws -> VirtualEIDDescription {
    let description = try VirtualCardKinds([VirtualEIDKind()]).describe(JSON(text.utf8))
    return try #require(description as? VirtualEIDDescription)
}

/// The reason why a card file is refused; nil when the file is valid.
private func complaint(_ text: String) -> String? {
    do {
        _ = try read(text)
        return nil
    } catch let error as Malformed {
        return error.text
    } catch {
        return "another error: \(error)"
    }
}

private func content(_ box: SecretBox?) -> String? {
    guard let secret = box?.take() else { return nil }
    return secret.withBytes { String(decoding: $0, as: UTF8.self) }
}

@Suite("Card files", .timeLimit(.minutes(5))) struct CardFileTests {
    @Test(
        "an error names the wrong entry and the reason",
        arguments: [
            ("[]", "the document is not an object"),
            (#"{"simulator":null}"#, "simulator is not an object"),
            (#"{"simulator":[]}"#, "simulator is not an object"),
            (#"{"card":3}"#, "card is not an object"),
            (#"{"simulator":{"files":null}}"#, "files is not an array"),
            (#"{"simulator":{"files":{}}}"#, "files is not an array"),
            (#"{"simulator":{"files":[7]}}"#, "files[0] is not an object"),
            (#"{"simulator":{"files":[{}]}}"#, "files[0].fileId is missing"),
            (#"{"simulator":{"files":[{"fileId":257}]}}"#, "files[0].fileId is not a string"),
            (#"{"simulator":{"files":[{"fileId":"011"}]}}"#, "files[0].fileId has an odd number of digits"),
            (#"{"simulator":{"files":[{"fileId":"01"}]}}"#, "files[0].fileId is not 2 bytes in hexadecimal"),
            (#"{"simulator":{"files":[{"fileId":"01011d"}]}}"#, "files[0].fileId is not 2 bytes in hexadecimal"),
            (#"{"simulator":{"files":[{"fileId":"0x01"}]}}"#, "files[0].fileId is not hexadecimal"),
            (#"{"simulator":{"files":[{"fileId":"ää"}]}}"#, "files[0].fileId is not hexadecimal"),
            (#"{"simulator":{"files":[{"fileId":"0101"}]}}"#, "files[0].shortFileId is missing"),
            (
                #"{"simulator":{"files":[{"fileId":"0101","shortFileId":"0101"}]}}"#,
                "files[0].shortFileId is not 1 byte in hexadecimal"
            ),
            (#"{"simulator":{"files":[{"fileId":"0101","shortFileId":"01"}]}}"#, "files[0].content is missing"),
            (
                #"{"simulator":{"files":[{"fileId":"0101","shortFileId":"01","content":"00"},"#
                    + #"{"fileId":"0102","shortFileId":"02","content":"0g"}]}}"#,
                "files[1].content is not hexadecimal"
            ),
            (#"{"simulator":{"keys":"no"}}"#, "keys is not an array"),
            (#"{"simulator":{"keys":[null]}}"#, "keys[0] is not an object"),
            (#"{"simulator":{"keys":[{"content":"00"}]}}"#, "keys[0].id is not a whole number above 0"),
            (#"{"simulator":{"keys":[{"id":0,"content":"00"}]}}"#, "keys[0].id is not a whole number above 0"),
            (#"{"simulator":{"keys":[{"id":"1","content":"00"}]}}"#, "keys[0].id is not a whole number above 0"),
            (#"{"simulator":{"keys":[{"id":2147483648,"content":"00"}]}}"#, "keys[0].id is not a whole number above 0"),
            (#"{"simulator":{"keys":[{"id":1}]}}"#, "keys[0].content is missing"),
            (#"{"simulator":{"keys":[{"id":1,"content":[]}]}}"#, "keys[0].content is not a string"),
            (#"{"card":{"kind":"tram"}}"#, "card.kind is not one of eid"),
            (#"{"card":{"kind":null}}"#, "card.kind is not one of eid"),
            (#"{"card":{"kind":["eid"]}}"#, "card.kind is not one of eid"),
            (#"{"card":{"pin":123456}}"#, "card.pin is not a string of 6 digits"),
            (#"{"card":{"pin":"12345"}}"#, "card.pin is not a string of 6 digits"),
            (#"{"card":{"pin":"12345x"}}"#, "card.pin is not a string of 6 digits"),
            (#"{"card":{"pin":"12345\n"}}"#, "card.pin is not a string of 6 digits"),
            (#"{"card":{"can":"1234567"}}"#, "card.can is not a string of 6 digits"),
            (#"{"card":{"puk":"123456789"}}"#, "card.puk is not a string of 10 digits"),
            (#"{"card":{"transportPin":"123456"}}"#, "card.transportPin is not a string of 5 digits"),
            (#"{"card":{"transportPin":null}}"#, "card.transportPin is not a string of 5 digits"),
            (#"{"card":{"retryCounter":4}}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"card":{"retryCounter":-1}}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"card":{"retryCounter":1.5}}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"card":{"retryCounter":"3"}}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"card":{"pukCounter":11}}"#, "card.pukCounter is not a whole number from 0 to 10"),
            (#"{"card":{"deactivated":1}}"#, "card.deactivated is not true or false"),
            (#"{"card":{"keypad":"yes"}}"#, "card.keypad is not true or false"),
            (#"{"card":{"latencyMs":60001}}"#, "card.latencyMs is not a whole number from 0 to 60000"),
            (#"{"card":{"faults":{}}}"#, "card.faults is not an array"),
            (#"{"card":{"faults":["mute"]}}"#, "card.faults[0] is not an object"),
            (#"{"card":{"faults":[{"do":"mute"}]}}"#, "card.faults[0].afterApdu is missing"),
            (
                #"{"card":{"faults":[{"afterApdu":-1,"do":"mute"}]}}"#,
                "card.faults[0].afterApdu is not a whole number from 0 to 1000000"
            ),
        ] as [(String, String)]
    )
    func wrong(text: String, expected: String) {
        #expect(complaint(text) == expected)
    }

    @Test(
        "a fault is a known name or a status word of four digits",
        arguments: [
            ("remove", .remove), ("removeAfter", .removeAfter), ("mute", .mute), ("truncate", .truncate),
            ("garbage", .garbage), ("sw:6988", .status(StatusWord(0x6988))), ("sw:6f00", .status(StatusWord(0x6F00))),
            ("muteAfter", .muteAfter), ("flipBit", .flipBit), ("replay", .replay),
            ("swAfter:6982", .statusAfter(StatusWord(0x6982))), ("swAfter:", nil), ("swAfter:698", nil),
            ("", nil), ("Remove", nil), ("sw:", nil), ("sw:698", nil), ("sw:69880", nil), ("sw:+698", nil),
            ("sw:-698", nil), ("sw:69g8", nil), ("sw 6988", nil),
        ] as [(String, VirtualCardFault.Action?)]
    )
    func faults(text: String, action: VirtualCardFault.Action?) throws {
        let file = #"{"card":{"faults":[{"afterApdu":7,"do":"\#(text)"}]}}"#
        guard let action else {
            #expect(
                complaint(file)
                    == "card.faults[0].do is not one of remove, removeAfter, mute, muteAfter, truncate, garbage, "
                    + "flipBit, replay, sw:XXXX, swAfter:XXXX"
            )
            return
        }
        #expect(try read(file).options.faults == [.init(afterAPDU: 7, action: action)])
    }

    @Test("all entries are read")
    func complete() throws {
        let description = try read(
            #"{"simulator":{"files":[{"fileId":"011D","shortFileId":"1d","content":"6A00fF"}],"#
                + #""keys":[{"id":41,"content":"3081"}],"other":1},"card":{"pin":"111111","can":"222222","#
                + #""puk":"3333333333","retryCounter":2,"pukCounter":0,"deactivated":true,"keypad":true,"#
                + #""latencyMs":60000,"transportPin":"44444","later":[]}}"#
        )
        #expect(description.files == [.init(fileID: 0x011D, shortFileID: 0x1D, content: [0x6A, 0x00, 0xFF])])
        #expect(description.keys?.map(\.id) == [41])
        #expect(description.keys?.first?.content.take()?.withBytes { Array($0) } == [0x30, 0x81])
        #expect(content(description.pin) == "111111")
        #expect(content(description.can) == "222222")
        #expect(content(description.puk) == "3333333333")
        #expect(content(description.transportPIN) == "44444")
        #expect(description.retryCounter == 2)
        #expect(description.pukCounter == 0)
        #expect(description.deactivated)
        #expect(description.hasKeypad)
        #expect(description.options.latency == 60_000)
    }

    @Test(
        "an empty file or simulator means the default card, and any other simulator only has its own files",
        arguments: [
            ("{}", false), (#"{"simulator":{}}"#, false), (#"{"card":{}}"#, false),
            (#"{"card":{"kind":"eid"}}"#, false),
            (#"{"simulator":{"files":[]}}"#, true), (#"{"simulator":{"keys":[]}}"#, true),
        ] as [(String, Bool)]
    )
    func defaults(text: String, hasFiles: Bool) throws {
        let description = try read(text)
        #expect((description.files != nil) == hasFiles)
        #expect((description.keys != nil) == hasFiles)
        #expect(description.pin == nil)
        #expect(description.retryCounter == 3)
        #expect(description.options.faults.isEmpty)
    }

    @Test("true means the default transport PIN, and false means none")
    func transportPIN() throws {
        #expect(content(try read(#"{"card":{"transportPin":true}}"#).transportPIN) == "12345")
        #expect(try read(#"{"card":{"transportPin":false}}"#).transportPIN == nil)
    }

    @Test("the number of entries and the size of contents are limited")
    func bounds() throws {
        func list(_ count: Int) -> String { Array(repeating: "{}", count: count).joined(separator: ",") }
        for (text, expected) in [
            ("{\"simulator\":{\"files\":[\(list(257))]}}", "files has more than 256 entries"),
            ("{\"simulator\":{\"keys\":[\(list(257))]}}", "keys has more than 256 entries"),
            ("{\"card\":{\"faults\":[\(list(257))]}}", "card.faults has more than 256 entries"),
            (
                "{\"simulator\":{\"keys\":[{\"id\":1,\"content\":\"\(String(repeating: "00", count: 65_536))\"}]}}",
                "keys[0].content is longer than 65535 bytes"
            ),
        ] {
            #expect(complaint(text) == expected)
        }
    }
}
