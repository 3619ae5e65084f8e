// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Server
import Text

/// EAC2: sends the terminal's key and signature; receives the result of chip authentication. TR-03112-7 3.6.4.2.
extension Conversation {
    /// Sends EAC2. `asked` lists the authority references for which the client has no chain.
    func sendEAC2(_ message: PAOSMessage, asked: [String]) throws(ConversationError) -> HTTPResponse {
        if let response = try replacement("eac2", for: message) { return response }
        if options.fault == .eac2Skip { return finish(message) }
        guard let ephemeral else { throw .internalError("no ephemeral key") }
        var fields = try laterCertificates(asked)
        var point = ephemeral.key.publicKey.uncompressed
        switch options.fault {
        case .eac2XYOnly: point.removeFirst()
        case .eac2OffCurve: point[point.count - 1] ^= 1
        default: break
        }
        let field = XML.element("iso:EphemeralPublicKey", bytes: point)
        switch options.fault {
        case .eac2NoKey: break
        case .eac2TwoKeys: fields += [field, field]
        default: fields.append(field)
        }
        if !options.usesAdditionalInput { fields.append(.element("iso:Signature", bytes: try signature())) }
        state = options.usesAdditionalInput ? .additional : .eac2
        return delayed(send(PAOSAnswer.didAuthenticate(slot: slot, "EAC2InputType", fields), to: message), "eac2")
    }

    private func laterCertificates(_ asked: [String]) throws(ConversationError) -> [XML] {
        var certificates: [[UInt8]] = []
        if options.chain == .late {
            if asked.isEmpty {
                report.event("the client asks for no certificates")
            } else if !asked.contains(CVAuthority.rootName) {
                report.note("the answer to EAC1 does not name the authority \(CVAuthority.rootName)")
            }
            if options.fault != .eac2NoLink { certificates.append(authority.link) }
        } else if !asked.isEmpty {
            report.note("the answer to EAC1 asks for certificates, although the chain is complete")
        }
        if options.fault == .eac2OtherAT || options.fault == .eac2OldAT {
            do {
                let isOld = options.fault == .eac2OldAT
                certificates.append(try terminalCertificate(holder: "DEATBADGED00002", isOld: isOld))
            } catch {
                throw .internalError("certificates: \(error)")
            }
        }
        return certificates.map { .element("iso:Certificate", bytes: $0) }
    }

    private func signature() throws(ConversationError) -> [UInt8] {
        guard let ephemeral else { throw .internalError("no ephemeral key") }
        do throws(CryptoError) {
            let signed = TerminalAuthentication.message(
                idPICC: idPICC,
                challenge: options.fault == .eac2Challenge ? try Random.bytes(8) : challenge,
                ephemeralKey: ephemeral.key.publicKey.compressed,
                auxiliaryData: auxiliaryData.encoded
            )
            var signature = try authority.sign(signed, as: .terminal)
            if options.fault == .eac2Signature { signature[signature.count - 1] ^= 1 }
            return signature
        } catch {
            throw .internalError("signature: \(error)")
        }
    }

    /// Receives the answer to an EAC2 without signature, and sends the signature.
    func receiveChallenge(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        try requireOK(message)
        guard let challenge = message.bytes("Challenge") else {
            throw .incorrectParameter("Challenge is missing before EACAdditionalInputType")
        }
        if challenge != self.challenge { report.note("the challenge changed between EAC1 and EAC2") }
        self.challenge = challenge
        state = .eac2
        let fields = [XML.element("iso:Signature", bytes: try signature())]
        return send(PAOSAnswer.didAuthenticate(slot: slot, "EACAdditionalInputType", fields), to: message)
    }

    func receiveEAC2(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        try requireOK(message)
        if message.protocolType != "EAC2OutputType" { report.note("the answer to EAC2 has another type") }
        guard let file = message.bytes("EFCardSecurity"), let token = message.bytes("AuthenticationToken"),
            let nonce = message.bytes("Nonce")
        else { throw .incorrectParameter("EFCardSecurity, AuthenticationToken or Nonce is missing or no hexBinary") }
        guard let security = try? CardSecurity(file), let keys = try? sessionKeys(security, token, nonce) else {
            throw .internalError("chip authentication fails")
        }
        let isGenuine = PassiveAuthentication.isGenuine(file, authority: authority.documentAuthority)
        report.card.append(.init("passiveAuthentication", .bool(isGenuine)))
        report.event("the chip is authenticated")
        if options.fault == .transmitSkip { return finish(message) }
        if let response = try replacement("transmit", for: message) { return response }
        reading = try CardReading(effective, readLength: options.readLength, sector: authority, keys: keys)
        return try sendTransmit(message)
    }

    /// Completes chip authentication as the terminal. TR-03110-2 3.4.
    private func sessionKeys(
        _ security: CardSecurity,
        _ token: [UInt8],
        _ nonce: [UInt8]
    ) throws -> CardReading.Keys {
        guard let ephemeral, let info = security.securityInfos.chipAuthenticationInfo,
            let cipher = ChipAuthentication.cipher(of: info.protocolID)
        else { throw ConversationError.internalError("no chip authentication") }
        let outcome = try ChipAuthentication.agree(
            ephemeral.key,
            with: try security.chipKey(info.keyID, on: ephemeral.key.group.curve),
            ephemeral: ephemeral.key.publicKey,
            nonce: nonce,
            cipher: cipher
        )
        guard ConstantTime.equal(outcome.token, token) else { throw ConversationError.internalError("wrong token") }
        return CardReading.Keys(outcome.keys.clone())
    }
}

extension CardSecurity {
    /// Finds the ChipAuthenticationPublicKeyInfo of a key. TR-03110-3 A.1.1.2.
    func chipKey(_ id: Int?, on curve: Curve) throws -> ECPublicKey {
        for info in try BERTLV(content).children {
            let fields = try info.children
            guard fields.count >= 2, fields[0] == BERTLV(0x06, OID.bsi + [2, 2, 1, 2]),
                fields.count == 2 || id == nil || fields[2].value == [UInt8(truncatingIfNeeded: id ?? 0)]
            else { continue }
            let key = try fields[1].children
            guard key.count == 2, key[1].tag == 0x03, key[1].value.first == 0 else { continue }
            return try ECPublicKey(Array(key[1].value.dropFirst()), on: curve)
        }
        throw ConversationError.internalError("EF.CardSecurity shows no key for chip authentication")
    }
}
