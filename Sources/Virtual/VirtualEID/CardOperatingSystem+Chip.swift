// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import ReadersVirtual

/// Chip authentication version 2, restricted identification, comparison of auxiliary data. TR-03110-3 B.2, B.4, B.11.
extension CardOperatingSystem {
    /// MSE:Set AT for chip authentication or restricted identification.
    func setChipProtocol(_ objects: DataObjects) throws(RefusedCommand) -> ResponseAPDU {
        pace = nil
        session.chosen = nil
        try objects.allow(only: [0x80, 0x84])
        let protocolID = try objects.value(0x80)
        let keyID = try objects.byte(0x84).map(Int.init)
        guard let terminal = session.terminal else { throw RefusedCommand(0x6982) }
        if let cipher = ChipAuthentication.cipher(of: protocolID) {
            let infos = algorithms.chipAuthentication.filter { $0.protocolID == protocolID }
            guard let info = infos.first(where: { keyID == nil || $0.keyID == keyID }) else {
                throw RefusedCommand(0x6A88)
            }
            guard !session.isChipAuthenticated else { throw RefusedCommand(0x6985) }
            guard !info.isPrivileged || terminal.rights.contains(AccessRight.privilegedTerminal) else {
                throw RefusedCommand(0x6982)
            }
            guard let key = keys[info.keyID] else { throw RefusedCommand(0x6A88) }
            session.chosen = .chipAuthentication(key, cipher)
        } else if let digest = RestrictedIdentification.digest(of: protocolID) {
            guard let keyID, let key = keys[keyID],
                !algorithms.chipAuthentication.contains(where: { $0.keyID == keyID })
            else { throw RefusedCommand(0x6A88) }
            let isAllowed =
                session.isChipAuthenticated
                && (!algorithms.isAuthorizedOnly(keyID) || session.allows(.restrictedIdentification))
            guard isAllowed else { throw RefusedCommand(0x6982) }
            session.chosen = .restrictedIdentification(key, digest)
        } else {
            throw RefusedCommand(0x6A80)
        }
        return ResponseAPDU(.ok)
    }

    /// Runs chip authentication with the key to which the terminal has committed itself, and returns nonce (81) and
    /// token (82).
    func authenticateChip(_ data: [UInt8], _ own: CardKey, _ cipher: AES) throws(RefusedCommand) -> ResponseAPDU {
        session.chosen = nil
        let objects = try dynamicData(data)
        try objects.allow(only: [0x80])
        let point = try objects.value(0x80)
        guard let ephemeral = try? ECPublicKey(point, on: own.key.group.curve) else { throw RefusedCommand(0x6A80) }
        guard ephemeral.compressed == session.terminal?.ephemeralKey else { throw RefusedCommand(0x6300) }
        let nonce = try crypto(random.bytes(ChipAuthentication.nonceLength))
        let outcome = try crypto(
            ChipAuthentication.agree(own.key, with: ephemeral, ephemeral: ephemeral, nonce: nonce, cipher: cipher)
        )
        session.isChipAuthenticated = true
        let answer = BERTLV(0x7C, [BERTLV(0x81, nonce), BERTLV(0x82, outcome.token)])
        open(SecureMessaging(outcome.keys.clone()))
        return ResponseAPDU(data: answer.encoded, .ok)
    }

    /// Restricted identification: takes the public key of a sector and returns the identifier. The key in A0 belongs to
    /// the first hash in the certificate, the key in A2 to the second. The identifiers are in 81 and 83.
    func identify(_ data: [UInt8], _ own: CardKey, _ digest: DigestAlgorithm) throws(RefusedCommand) -> ResponseAPDU {
        let objects = try dynamicData(data)
        try objects.allow(only: [0xA0, 0xA2])
        guard let terminal = session.terminal, objects[0xA0] == nil || objects[0xA2] == nil,
            let object = objects[0xA0] ?? objects[0xA2]
        else { throw RefusedCommand(0x6A80) }
        let isFirst = object.tag == 0xA0
        guard let announced = try? CVPublicKey(objects: try object.children),
            let sector = try? announced.key(inheriting: own.key.group.curve)
        else { throw RefusedCommand(0x6A80) }
        guard announced.identifier == RestrictedIdentification.protocolID(digest) else { throw RefusedCommand(0x6981) }
        guard sector.curve == own.key.group.curve else { throw RefusedCommand(0x6A80) }
        let hashes = terminal.authority.certificate.sectorHashes
        let hash = try crypto { () throws(CryptoError) in
            let key = CVPublicKey(identifier: announced.identifier, sector, writesParameters: true)
            return try terminal.authority.issuerDigest.hash(try key.object.encoded)
        }
        // The certificate names the sectors of the terminal.
        guard hash == (isFirst ? hashes.first : hashes.second) else { throw RefusedCommand(0x6300) }
        let identifier = try crypto(RestrictedIdentification.identifier(own.key, sector: sector, digest: digest))
        return ResponseAPDU(data: BERTLV(0x7C, [BERTLV(isFirst ? 0x81 : 0x83, identifier)]).encoded, .ok)
    }

    private func dynamicData(_ data: [UInt8]) throws(RefusedCommand) -> DataObjects {
        guard let outer = try? BERTLV(data), outer.tag == 0x7C else { throw RefusedCommand(0x6A80) }
        return try DataObjects(outer.value)
    }

    /// VERIFY: compares the auxiliary data that the terminal has signed with the data of the card.
    /// TR-03110-3 A.6.5, B.11.8.
    func verifyAuxiliaryData(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0x80, command.p2 == 0x00 else { throw RefusedCommand(0x6A86) }
        guard !command.data.isEmpty else { throw RefusedCommand(0x6700) }
        guard session.isChipAuthenticated, let terminal = session.terminal else { throw RefusedCommand(0x6982) }
        let objects = try DataObjects(command.data)
        try objects.allow(only: [0x06])
        guard let kind = AuxiliaryData.Kind(identifier: try objects.value(0x06)) else { throw RefusedCommand(0x6A80) }
        let right: AccessRight? =
            switch kind {
            case .dateOfBirth: .ageVerification
            case .dateOfExpiry: nil
            case .communityID: .communityIDVerification
            }
        if let right, !terminal.rights.contains(right) { throw RefusedCommand(0x6982) }
        guard let asked = terminal.auxiliaryData?.values[kind] else { throw RefusedCommand(0x6A88) }
        guard matches(asked, kind) else { throw RefusedCommand(0x6300) }
        return ResponseAPDU(.ok)
    }

    /// Compares a date with the last eight bytes of data group 8 or 3, or a community ID with data group 18. There it
    /// follows four bytes of tags and lengths.
    private func matches(_ asked: [UInt8], _ kind: AuxiliaryData.Kind) -> Bool {
        func date(_ group: UInt8) -> [UInt8]? {
            guard asked.count == 8, let content = files[group], content.count >= 8 else { return nil }
            return Array(content.suffix(8))
        }
        switch kind {
        case .dateOfBirth: return date(0x08).map { !asked.lexicographicallyPrecedes($0) } ?? false
        case .dateOfExpiry: return date(0x03).map { !$0.lexicographicallyPrecedes(asked) } ?? false
        case .communityID: return !asked.isEmpty && (files[0x12]?.dropFirst(4).starts(with: asked) ?? false)
        }
    }
}
