// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import ISO7816

/// Terminal and chip authentication for a server that holds the keys, in the order of TR-03110-2 3.3 and 3.4. They run
/// in the channel of PACE; afterwards the server has a channel of its own.
extension EIDCard {
    /// Gets the challenge that the terminal signs: 8 bytes. GET CHALLENGE, TR-03110-3 B.3.
    package func getChallenge() async throws(ChipError) -> [UInt8] {
        let length = TerminalAuthentication.challengeLength
        let answer = try await transmit(CommandAPDU(0x00, 0x84, 0x00, 0x00, le: length))
        guard answer.status == .ok else { throw .status(answer.status) }
        guard answer.data.count == length else { throw .protocolViolation("challenge of a wrong length") }
        return answer.data
    }

    /// Sends the certificates, then the signature of the challenge. TR-03110-3 B.3, B.11.3, B.11.4, B.11.7.
    /// - Throws: `.status` when the card refused a step; `.unsupported` when the proof cannot be sent.
    package func authenticateTerminal(_ proof: TerminalProof) async throws(ChipError) {
        guard let terminal = proof.chain.last, let compressedKey = proof.compressedKey else {
            throw .unsupported("no terminal certificate, or no uncompressed ephemeral key")
        }
        for certificate in proof.chain {
            let issuer = BERTLV(0x83, certificate.authorityReference).encoded
            try await succeed(CommandAPDU(0x00, 0x22, 0x81, 0xB6, data: issuer))
            try await succeed(CommandAPDU(0x00, 0x2A, 0x00, 0xBE, data: certificate.commandData))
        }
        let announcement =
            BERTLV(0x80, terminal.publicKey.identifier).encoded + BERTLV(0x83, terminal.holderReference).encoded
            + proof.auxiliaryData + BERTLV(0x91, compressedKey).encoded
        try await succeed(CommandAPDU(0x00, 0x22, 0x81, 0xA4, data: announcement))
        try await succeed(CommandAPDU(0x00, 0x82, 0x00, 0x00, data: proof.signature))
    }

    /// Reads EF.CardSecurity, in one command if the reader supports answers of this length. Cards allow this only after
    /// terminal authentication. TR-03110-3 A.1.2.5.
    /// - Throws: `.card(.cancelled)` when the task was cancelled between two commands.
    package func readCardSecurity() async throws(ChipError) -> CardSecurity {
        let content = try await TransparentFile.read(
            "EF.CardSecurity",
            CardSecurity.shortFileID,
            le: CommandAPDU.maximumLe,
            hasLength: true
        ) { command throws(ChipError) in
            try await transmit(command)
        }
        guard let security = try? CardSecurity(content) else {
            throw .protocolViolation("EF.CardSecurity cannot be read")
        }
        return security
    }

    /// Sends the terminal's ephemeral key. After its answer the card accepts only the channel of the server, whose keys
    /// badged does not have. TR-03110-3 B.2, B.11.5.
    package func authenticateChip(
        _ security: CardSecurity,
        ephemeralKey: [UInt8]
    ) async throws(ChipError) -> ChipProof {
        let infos = security.securityInfos.chipAuthentication
        guard let info = infos.first(where: { $0.version == 2 }) else {
            throw .unsupported("the card announces no chip authentication of version 2")
        }
        var choice = BERTLV(0x80, info.protocolID).encoded
        if let keyID = info.keyID, let byte = UInt8(exactly: keyID) { choice += BERTLV(0x84, [byte]).encoded }
        try await succeed(CommandAPDU(0x00, 0x22, 0x41, 0xA4, data: choice))
        let request = BERTLV(0x7C, [BERTLV(0x80, ephemeralKey)]).encoded
        let answer = try await transmit(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: request, le: 256))
        guard answer.status == .ok else { throw .status(answer.status) }
        guard let objects = try? PACE.unwrap(answer.data), objects.map(\.tag) == [0x81, 0x82] else {
            throw .protocolViolation("chip authentication: no nonce and token")
        }
        forgetChannel()
        return ChipProof(nonce: objects[0].value, token: objects[1].value)
    }

    /// Sends a command, unchanged, that the server has secured with the keys of chip authentication.
    /// - Throws: `.unsupported` for a command without secure messaging, which is not sent. It would end the server's
    ///   channel, and could start another protocol without the user's consent.
    package func passThrough(_ command: CommandAPDU) async throws(ChipError) -> ResponseAPDU {
        guard command.isProtected else { throw .unsupported("command without secure messaging") }
        guard !hasChannel else { throw .unsupported("command before chip authentication") }
        return try await transmit(command)
    }

    private func succeed(_ command: CommandAPDU) async throws(ChipError) {
        let answer = try await transmit(command)
        guard answer.status == .ok else { throw .status(answer.status) }
    }
}
