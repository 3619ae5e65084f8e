// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import BadgedClient

@Suite("Messages of door readers", .timeLimit(.minutes(5))) struct DoorReaderMessageTests {
    private static let entry =
        #"{"id":"x","profile":"seos","name":"Door","lockServiceCode":2,"lockServiceCodes":[2,33],"openingTypes":["motion","proximity"],"#
        + #""inRange":{"proximity":true,"motion":true,"seamless":false},"rssi":{"last":-61,"level":-60.3},"#
        + #""active":false}"#
    private static let reader = DoorReader(
        id: "x",
        profile: "seos",
        name: "Door",
        lockServiceCode: 2,
        lockServiceCodes: [2, 33],
        openingTypes: ["motion", "proximity"],
        inRange: ["motion", "proximity"],
        level: -60.3,
        lastRSSI: -61,
        isActive: false
    )

    private static let cases = [
        MessageCase(#"{"msg":"DOOR_READER","reader":\#(entry)}"#, reader),
        MessageCase(
            #"{"msg":"DOOR_READER","reader":{"id":"y","profile":"pkoc","rssi":{"last":-61}}}"#,
            DoorReader(id: "y", profile: "pkoc", level: -61, lastRSSI: -61)
        ),
        MessageCase(#"{"msg":"DOOR_READER"}"#, UnreadableMessage(name: "DOOR_READER", member: "reader")),
        MessageCase(#"{"msg":"DOOR_READER_LOST","id":"x"}"#, DoorReaderLost(id: "x")),
        MessageCase(#"{"msg":"DOOR_READER_LIST","readers":[\#(entry)]}"#, DoorReaderList(readers: [reader])),
        MessageCase(
            #"{"msg":"DOOR_READER_LIST","error":"no"}"#,
            Refusal(name: "DOOR_READER_LIST", error: "no")
        ),
        MessageCase(#"{"msg":"CLOSEST_DOOR_READER","reader":\#(entry)}"#, ClosestDoorReader.reader(reader)),
        MessageCase(
            #"{"msg":"CLOSEST_DOOR_READER","reader":null,"reason":"outOfRange"}"#,
            ClosestDoorReader.nobody(reason: "outOfRange")
        ),
        MessageCase(
            #"{"msg":"SCAN","wanted":true,"radio":false,"backend":"bluez","error":"E","errorAgo":500}"#,
            ScanStatus(
                isWanted: true,
                isListening: false,
                backend: "bluez",
                error: "E",
                errorAge: .milliseconds(500)
            )
        ),
        MessageCase(
            #"{"msg":"ADVERT","adapter":"hci0","address":"C0:00:00:00:00:01","addressType":"static","data":"0a0B","#
                + #""rssi":-60,"scanResponse":true,"lost":3}"#,
            Advertisement(
                adapter: "hci0",
                address: "C0:00:00:00:00:01",
                addressType: "static",
                data: [0x0A, 0x0B],
                rssi: -60,
                isScanResponse: true,
                lost: 3
            )
        ),
        MessageCase(
            #"{"msg":"ADVERT","address":"x","addressType":"static","data":"0a0"}"#,
            UnreadableMessage(name: "ADVERT", member: "data")
        ),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }
}
