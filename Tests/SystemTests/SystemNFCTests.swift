// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import Glibc
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersPCSC
import TestSupport
import Testing

extension RealServices {
    /// Tests the NFC driver together with pcscd and with udev messages.
    @Suite("NFC")
    struct NFCTests {
        @Test("readers of pcscd and of libnfc work at the same time")
        func both() async throws {
            PCSCD.cleanUp()
            let board = try EmulatedPN532()
            let nfc = DriverBackend.nfc(devices: [board.connection])
            let pcsc = PCSCBackend()
            let (nfcEvents, pcscEvents) = (Events(nfc), Events(pcsc))
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await nfcEvents.wait(for: "added pn532_uart:\(board.path)")
            try await pcscEvents.wait(for: "added Virtual One 00 01")
            let card = VPCDCard(port: 36_000)
            card.insert()
            board.field.insert(PICC(application: PICC.echo))
            let first = try await nfc.connect(nfcEvents.insertion(in: "pn532_uart:\(board.path)"))
            let second = try await pcsc.connect(pcscEvents.insertion(in: "Virtual One 00 00"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for connection in [first, second] {
                    group.addTask {
                        for length in [1, 255, 256, 4000] {
                            let data = [UInt8](repeating: UInt8(truncatingIfNeeded: length), count: length)
                            let answer = try await connection.transmit(CommandAPDU(0, 0xC0, 0, 0, data: data))
                            #expect(answer == ResponseAPDU(data: data, .ok))
                        }
                    }
                }
                try await group.waitForAll()
            }
            await first.disconnect(reset: true)
            await second.disconnect(reset: true)
            await nfc.close()
            await pcscd.end()
        }

        @Test("a board is found after its udev message, and other messages are ignored")
        func udev() async throws {
            let board = try EmulatedPN532()
            board.unplug()
            let backend = DriverBackend.nfc(devices: [board.connection])
            let events = Events(backend)
            #expect(try await events.next().hasPrefix("health nfc"))
            try board.plug()
            try UdevMessage.send(action: "add", subsystem: "block", type: "disk")
            try UdevMessage.send(action: "remove", subsystem: "tty")
            try UdevMessage.send(action: "add", subsystem: "tty")
            // The board uses its own thread, so the order of these two events is undefined.
            var missing: Set = ["added pn532_uart:\(board.path)", "health ok"]
            while !missing.isEmpty { missing.remove(try await events.next()) }
        }
    }
}
