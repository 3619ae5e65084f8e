// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import ReadersVirtual

/// Terminal authentication, version 2. TR-03110-2 3.3, TR-03110-3 B.3, B.11.
extension CardOperatingSystem {
    /// MSE:Set DST: selects the key that verifies the next certificate. TR-03110-3 B.11.3.
    func setSignatureKey(_ objects: DataObjects) throws(RefusedCommand) -> ResponseAPDU {
        try requireUnauthenticatedTerminal()
        session.issuer = nil
        try objects.allow(only: [0x83])
        let reference = try objects.value(0x83)
        let known = [session.imported].compactMap { $0 } + trustPoints
        guard let issuer = known.first(where: { $0.certificate.holderReference == reference }) else {
            throw RefusedCommand(0x6A88)
        }
        session.issuer = issuer
        return ResponseAPDU(.ok)
    }

    /// PSO:VERIFY CERTIFICATE. The answer to a well-formed certificate that is not accepted is 6300.
    func verifyCertificate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0x00, command.p2 == 0xBE else { throw RefusedCommand(0x6A86) }
        try requireUnauthenticatedTerminal()
        guard !command.data.isEmpty else { throw RefusedCommand(0x6700) }
        guard let issuer = session.issuer else { throw RefusedCommand(0x6985) }
        session.issuer = nil
        guard let certificate = try? CVCertificate(commandData: command.data),
            let isGenuine = try? certificate.isSigned(by: issuer.key, issuer.digest),
            let holder = try? CertificateHolder(certificate, issuedBy: issuer)
        else { throw RefusedCommand(0x6A80) }
        guard isGenuine, certificate.authorityReference == issuer.certificate.holderReference,
            isAcceptable(certificate, from: issuer.certificate)
        else { throw RefusedCommand(0x6300) }
        session.imported = holder
        if certificate.chat.role == .cvca { addTrustPoint(holder) }
        if holder.isAccurate { advanceDate(to: certificate.effectiveDate) }
        return ResponseAPDU(.ok)
    }

    /// Checks the rules other than the signature. Link certificates do not expire for a card. TR-03110-3 2.2, 2.5.
    private func isAcceptable(_ certificate: CVCertificate, from issuer: CVCertificate) -> Bool {
        let role = certificate.chat.role
        return issuer.chat.role.mayIssue(role) && issuer.chat.terminalType == certificate.chat.terminalType
            && certificate.effectiveDate <= certificate.expirationDate
            && (role == .cvca ? certificate.publicKey.curve != nil : certificate.expirationDate >= currentDate)
    }

    private func addTrustPoint(_ new: CertificateHolder) {
        let reference = new.certificate.holderReference
        guard !trustPoints.contains(where: { $0.certificate.holderReference == reference }) else { return }
        trustPoints = [new] + trustPoints.prefix(1)
    }

    /// Moves the date of the card forward, and removes the older trust point when it has expired.
    private func advanceDate(to date: CVDate) {
        currentDate = max(currentDate, date)
        if trustPoints.count > 1 {
            trustPoints =
                trustPoints.prefix(1)
                + trustPoints.dropFirst().filter { $0.certificate.expirationDate >= currentDate }
        }
    }

    /// GET CHALLENGE: draws 8 bytes for the terminal to sign.
    func getChallenge(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0, command.p2 == 0 else { throw RefusedCommand(0x6A86) }
        let length = TerminalAuthentication.challengeLength
        guard command.data.isEmpty, let le = command.le, le >= length else { throw RefusedCommand(0x6700) }
        let challenge = try crypto(random.bytes(length))
        session.challenge = challenge
        return ResponseAPDU(data: challenge, .ok)
    }

    /// MSE:Set AT: names the terminal that will sign, its ephemeral key and its auxiliary data. TR-03110-3 B.11.1.
    func setTerminalAuthentication(_ objects: DataObjects) throws(RefusedCommand) -> ResponseAPDU {
        try requireUnauthenticatedTerminal()
        session.announced = nil
        try objects.allow(only: [0x67, 0x80, 0x83, 0x91])
        let protocolID = try objects.value(0x80)
        let reference = try objects.value(0x83)
        guard let digest = TerminalAuthentication.digest(of: protocolID) else { throw RefusedCommand(0x6A80) }
        guard let terminal = session.imported, terminal.certificate.holderReference == reference,
            terminal.certificate.chat.role == .terminal
        else { throw RefusedCommand(0x6A88) }
        guard digest == terminal.digest else { throw RefusedCommand(0x6985) }
        let auxiliaryData = objects[0x67].flatMap { try? AuxiliaryData($0) }
        guard (auxiliaryData == nil) == (objects[0x67] == nil) else { throw RefusedCommand(0x6A80) }
        session.announced = CardSession.Announcement(
            terminal: terminal,
            ephemeralKey: try objects.value(0x91),
            auxiliaryData: auxiliaryData
        )
        return ResponseAPDU(.ok)
    }

    /// EXTERNAL AUTHENTICATE: verifies the signature of the terminal. Each challenge is used once.
    func externalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0, command.p2 == 0 else { throw RefusedCommand(0x6A86) }
        try requireUnauthenticatedTerminal()
        guard !command.data.isEmpty else { throw RefusedCommand(0x6700) }
        guard let announced = session.announced, let challenge = session.challenge, let chat = session.chat else {
            throw RefusedCommand(0x6985)
        }
        session.announced = nil
        session.challenge = nil
        let message = TerminalAuthentication.message(
            idPICC: session.idPICC,
            challenge: challenge,
            ephemeralKey: announced.ephemeralKey,
            auxiliaryData: announced.auxiliaryData?.encoded ?? []
        )
        let terminal = announced.terminal
        let isGenuine = try crypto(ECDSA.verify(command.data, of: message, with: terminal.key, digest: terminal.digest))
        guard isGenuine, chat.terminalType == terminal.certificate.chat.terminalType else {
            throw RefusedCommand(0x6300)
        }
        let rights = terminal.rights.intersection(chat.rights)
        guard maySucceed(with: rights) else { throw RefusedCommand(0x6982) }
        session.terminal = CardSession.Terminal(
            authority: terminal,
            rights: rights,
            ephemeralKey: announced.ephemeralKey,
            auxiliaryData: announced.auxiliaryData
        )
        return ResponseAPDU(.ok)
    }

    /// Whether the password of the channel allows terminal authentication: the PIN unless it is the transport PIN, and
    /// the CAN for terminals with that right. TR-03110-2 2.3, TR-03127 3.5.
    private func maySucceed(with rights: AccessRights) -> Bool {
        switch session.password {
        case .pin: !passwords.isTransport
        case .can: rights.contains(AccessRight.canAllowed)
        case .mrz, .puk, nil: false
        }
    }

    /// Requires a channel of PACE with a CHAT, and no authenticated terminal.
    private func requireUnauthenticatedTerminal() throws(RefusedCommand) {
        guard isProtected, session.chat != nil else { throw RefusedCommand(0x6982) }
        guard session.terminal == nil else { throw RefusedCommand(0x6985) }
    }
}
