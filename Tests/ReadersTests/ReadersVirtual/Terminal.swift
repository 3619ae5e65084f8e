// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import ReadersVirtual
import TestSupport
import Text
import VirtualEID

extension VirtualCard {
    /// Sends a command and returns the answer, both in hexadecimal digits.
    func send(_ digits: String) async throws -> String {
        guard case .answer(let answer) = await exchange(hex(digits)) else { throw Unexpected("no answer to \(digits)") }
        return hex(answer)
    }

    /// Sends a command and returns only the status word.
    func status(_ digits: String) async throws -> String { String(try await send(digits).suffix(4)) }

    /// Identifies the card as a terminal does.
    func terminal() async throws -> EIDCard {
        let channel = VirtualCardChannel(self)
        guard case .eid(let profile) = try await EIDCard.identify(on: channel) else { throw Unexpected("no eID card") }
        return EIDCard(channel: channel, profile: profile)
    }
}

extension EIDCard {
    /// Runs PACE with a password; returns the last status word.
    func prove(_ id: PasswordID, _ digits: String, chat: [UInt8]? = nil) async throws -> UInt16 {
        do {
            switch try await establishPACE(id, password: Secret(digits.utf8), chat: chat) {
            case .established: return 0x9000
            case .wrongPassword(_, let status), .usedUp(let status): return status.value
            }
        } catch ChipError.status(let status) {
            return status.value
        }
    }

    /// Sends a command in hexadecimal digits through the channel; returns the status word.
    func status(_ digits: String) async throws -> String {
        guard let command = CommandAPDU(bytes: hex(digits)) else { throw Unexpected("\(digits) is no command") }
        do {
            return try await transmit(command).status.description
        } catch ChipError.status(let status) {
            return status.description
        }
    }
}
