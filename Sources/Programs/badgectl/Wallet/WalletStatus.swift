// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl wallet status`: shows the wallet cards in the readers.
enum WalletStatus {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let readers = try await Invocation.ask { () throws(ClientError) in try await connection.readers() }
        let wanted = invocation.value(of: "--reader")
        if let wanted, !readers.contains(where: { $0.name == wanted }) {
            throw Failure(.failed, "there is no reader \(wanted)", hint: "badgectl readers lists the readers")
        }
        let cards = readers.compactMap { reader in
            reader.card?.keycard.map { (reader: reader.name, card: $0) }
        }.filter { wanted == nil || $0.reader == wanted }
        guard !cards.isEmpty else {
            throw Failure(.failed, "no reader has a wallet card", hint: "put the Keycard on the reader, and try again")
        }
        guard !invocation.wantsJSON else { return .done }
        let tables = cards.map { reader, card in
            reader.printable + "\n" + Help.columns(card.rows)
        }
        Output.line(tables.joined(separator: "\n"))
        return .done
    }
}
