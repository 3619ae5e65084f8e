// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import Secrets
import TestSupport

extension TestServer {
    /// A server whose readers are all known to it: virtual ones, or those of a backend.
    static func stage(
        _ backend: (any ReaderBackend)? = nil,
        readers names: [String] = ["Simulator"]
    ) async throws -> TestServer {
        let server = try TestServer(
            readers: backend == nil ? names.count : 0,
            backends: backend.map { [$0] } ?? []
        )
        try await server.ready(names)
        return server
    }

    /// Of the card in a virtual reader or on its shelf.
    func cardState(_ reader: String = "Simulator") async -> VirtualCard.State? {
        await readers?.cardState(in: reader)
    }

    /// Has the card in a virtual reader, or on its shelf, this PIN? Costs no try.
    func hasPIN(_ pin: String, _ reader: String = "Simulator") async -> Bool {
        await readers?.cardHasPIN(Secret(pin.utf8), in: reader) ?? false
    }
}

extension VirtualCardDescription {
    /// The default card with changes.
    static func card(_ change: (inout VirtualCardDescription) -> Void = { _ in }) -> VirtualCardDescription {
        var description = VirtualCardDescription()
        change(&description)
        return description
    }
}

extension CommandAPDU {
    /// The instruction and how it travels.
    var short: String {
        let ins = String(self.ins, radix: 16, uppercase: true)
        return ins + (cla & 0x0C == 0x0C ? " secured" : " plain") + (isChained ? " chained" : "")
    }

    /// The last step of PACE: the one by which a password is judged.
    var isToken: Bool { ins == 0x86 && !isChained }

    /// Ends a channel: a command that a card cannot but refuse.
    var endsChannel: Bool { self == CommandAPDU(0x00, 0x22, 0xC1, 0xA4) }
}
