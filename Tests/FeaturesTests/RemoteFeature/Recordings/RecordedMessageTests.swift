// SPDX-License-Identifier: GPL-3.0-or-later
import RemoteDevices
import Testing
import Text

@Suite(.timeLimit(.minutes(5))) struct RecordedMessageTests {
    /// Members of AusweisApp2 that badged does not use.
    private static let unused: Set<String> = ["ExpectedPINLength", "PreferredPinLength"]

    @Test(
        "Every message that AusweisApp2 has sent is read, and written again with the same members",
        arguments: [
            "basic-change-pin", "comfort-change-pin", "comfort-wrong-pin", "auth-comfort", "error-answers", "two-slots",
            "server-basic", "server-comfort", "server-comfort-wrong-pin", "server-comfort-cancel", "server-edges",
        ]
    )
    func messages(_ name: String) throws {
        let recording = try Recording(name)
        let own = recording.lines.filter { $0.isClient != recording.isPhone }
        #expect(own.count > 4)
        for line in own {
            let envelope = try IFDEnvelope(line.message.bytes)
            let again = try JSON(envelope.encode(.two))
            #expect(again.comparable() == line.message.comparable(without: Self.unused))
            #expect(again["ContextHandle"] == line.message["ContextHandle"])
            // A status and IFDEstablishContext have no handle; AusweisApp2 writes an empty one into errors.
            #expect(again["SlotHandle"] == line.message["SlotHandle"])
        }
    }
}
