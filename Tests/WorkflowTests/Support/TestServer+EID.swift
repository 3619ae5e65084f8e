// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import TestSupport
import Text
import VirtualEID

extension TestServer {
    /// Returns a server when all its readers are attached: virtual readers or those of a backend.
    static func started(
        _ backend: (any ReaderBackend)? = nil,
        readers names: [String] = ["Simulator"]
    ) async throws -> TestServer {
        let server = try await TestServer(
            readers: backend == nil ? names.count : 0,
            backends: backend.map { [$0] } ?? []
        )
        await server.ready(names)
        return server
    }

    /// Returns the state of the card of a virtual reader, inserted or not.
    func cardState(_ reader: String = "Simulator") async -> VirtualEIDState? {
        await readers?.cardState(in: reader)
    }

    /// Returns whether the card of a virtual reader, inserted or not, has this PIN; costs no try.
    func hasPIN(_ pin: String, _ reader: String = "Simulator") async -> Bool {
        await readers?.cardHasPIN(Secret(pin.utf8), in: reader) ?? false
    }
}

extension CommandAPDU {
    /// The instruction byte, and whether the command is secured and chained.
    var short: String {
        let ins = String(self.ins, radix: 16, uppercase: true)
        return ins + (cla & 0x0C == 0x0C ? " secured" : " plain") + (isChained ? " chained" : "")
    }

    /// Whether this is the last step of PACE, which verifies the password.
    var isToken: Bool { ins == 0x86 && !isChained }

    /// Whether this is the command that ends a channel; every card refuses it.
    var endsChannel: Bool { self == CommandAPDU(0x00, 0x22, 0xC1, 0xA4) }
}
