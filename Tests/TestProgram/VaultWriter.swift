// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Store
import Text
import Vault

/// vault-writer FOLDER [SOCKET]: writes into the vault of a folder until it is killed. Each line says what is durable.
/// With a socket the keys are in the TPM there.
enum VaultWriter {
    static func run(_ arguments: [String]) -> Never {
        Task.detached {
            do { try await write(arguments[0], tpm: arguments.dropFirst().first) } catch { Program.say("\(error)") }
            exit(1)
        }
        dispatchMain()
    }

    private static func write(_ folder: String, tpm socket: String?) async throws {
        let tpm = socket.map { TPM($0, isRequired: true, timeLimit: .seconds(240)) }
        let vault = Vault(StateStore { () throws(Failure) in try Store(folder: folder, tpm: tpm) }, tpm: tpm)
        _ = try await vault.setUp(1)
        guard let codes = OneTimeCodes(kind: .hotp), let tag = DataTag([0x85]) else { exit(2) }
        let otp: KeyRecord
        if let known = try await vault.keys(of: 1).first(where: { $0.codes != nil }) {
            otp = known
        } else {
            let secret = SecretBox(Secret("12345678901234567890".utf8))
            otp = try await vault.addCodes(codes, secret: secret, counter: 0, of: 1) { $0.isActive = true }
        }
        Program.say("otp \(otp.id)")
        for round in 0... {
            Program.say("code \(try await vault.code(otp.id, of: 1).counter)")
            try await vault.setData(SecretBox(Secret("round \(round)".utf8)), tag, key: otp.id, of: 1)
            Program.say("data round \(round)")
            let key = try await vault.makeKey(of: 1, origin: .created) { $0.isActive = true }
            Program.say("key \(key.id)")
            try await vault.delete(key.id, of: 1)
            Program.say("deleted \(key.id)")
        }
    }
}
