// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Server
import Text

/// EAC1: sends certificates and requested rights; receives the effective rights and the data of PACE. TR-03112-7 3.6.4.1.
extension Conversation {
    func sendEAC1(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        let fault = options.fault
        var recipe = DescriptionRecipe()
        recipe.subjectURL =
            switch fault {
            case .eac1NoSubjectURL: nil
            case .eac1OtherSubjectURL: "https://elsewhere.invalid"
            default: origin
            }
        recipe.certificateHashes = fault == .eac1NoCommCerts ? [] : certificateHashes
        if let (text, bytes) = options.terms {
            recipe.termsOfUsage = "Gesch\u{E4}ftszweck:\n" + String(repeating: text, count: bytes / text.utf8.count)
        }
        description = recipe.encoded
        auxiliaryData = wantedAuxiliaryData
        var fields = try certificates().map { XML.element("iso:Certificate", bytes: $0) }
        if fault != .eac1NoDescription {
            let field = XML.element(
                "iso:CertificateDescription",
                bytes: fault == .eac1DescriptionGarbage ? [0x30, 0x03, 0x02, 0x01] : description
            )
            fields += fault == .eac1TwoDescriptions ? [field, field] : [field]
        }
        if options.sendsRequired {
            let chat = fault == .eac1ChatGarbage ? [0x7F, 0x4C, 0x03, 0x06, 0x01, 0x2A] : chat(options.required)
            fields.append(.element("iso:RequiredCHAT", bytes: chat))
        }
        if !options.optional.isEmpty { fields.append(.element("iso:OptionalCHAT", bytes: chat(options.optional))) }
        fields.append(.element("iso:AuthenticatedAuxiliaryData", bytes: sentAuxiliaryData))
        if let text = options.transactionInfo { fields.append(.element("iso:TransactionInfo", text: text)) }
        fields += options.eidTypes.map { .element("iso:AcceptedEIDType", text: $0) }
        state = .eac1
        return send(PAOSAnswer.didAuthenticate(slot: slot, "EAC1InputType", fields), to: message)
    }

    private func chat(_ rights: AccessRights) -> [UInt8] { CHAT(.terminal, rights).object.encoded }

    private var wantedAuxiliaryData: AuxiliaryData {
        let asked = options.required.union(options.optional)
        var values: [AuxiliaryData.Kind: [UInt8]] = [.dateOfExpiry: today.eightDigits]
        if asked.contains(.ageVerification) { values[.dateOfBirth] = today.yearsAgo(18) }
        if asked.contains(.communityIDVerification) { values[.communityID] = [0x02, 0x76] }
        return AuxiliaryData(values)
    }

    private var sentAuxiliaryData: [UInt8] {
        switch options.fault {
        case .eac1AuxGarbage: [0x67, 0x7F]
        case .eac1AuxUnknown:
            BERTLV(0x67, [BERTLV(0x73, [BERTLV(0x06, OID.bsi + [3, 1, 4, 9]), BERTLV(0x53, [1])])]).encoded
        default: auxiliaryData.encoded
        }
    }

    // MARK: Certificates

    /// The rights of the terminal certificate: all that can be read or compared, and CAN allowed with `can`.
    private var terminalRights: AccessRights {
        if options.fault == .eac1ChatMore { return AccessRights([.readGivenNames]) }
        var rights = AccessRight.allCases.filter { $0.dataGroup != nil }
        rights += [.ageVerification, .communityIDVerification, .restrictedIdentification]
        if options.canAllowed { rights.append(.canAllowed) }
        return AccessRights(rights)
    }

    private var past: (CVDate, CVDate) { (today.advanced(days: -60), today.advanced(days: -30)) }
    private var future: (CVDate, CVDate) { (today.advanced(days: 30), today.advanced(days: 60)) }
    private var present: (CVDate, CVDate) { (today.advanced(days: -1), today.advanced(days: 30)) }

    private func certificates() throws(ConversationError) -> [[UInt8]] {
        do throws(CryptoError) {
            let terminal = try terminalCertificate()
            let verifier = try documentVerifierCertificate()
            var chain = [terminal, verifier]
            switch options.fault {
            case .eac1NoCerts: chain = []
            case .eac1NoAT: chain = [verifier]
            case .eac1NoDV: chain = [terminal]
            case .eac1TwoAT: chain.append(try terminalCertificate(holder: "DEATBADGED00002"))
            case .eac1CertGarbage: chain[0] = Array(terminal.dropLast(20))
            default: break
            }
            if options.chain == .link { chain.append(authority.link) }
            if options.includesRoot { chain.append(authority.root) }
            return options.reversesCertificates ? chain.reversed() : chain
        } catch {
            throw .internalError("certificates: \(error)")
        }
    }

    /// Issues the terminal certificate; with `isOld` it has expired.
    func terminalCertificate(
        holder: String = CVAuthority.terminalName,
        isOld: Bool = false
    ) throws(CryptoError) -> [UInt8] {
        let fault = options.fault
        let hashed = fault == .eac1DescriptionHash ? description + [0] : description
        var order = CVAuthority.Order(
            authority: CVAuthority.documentVerifierName,
            signer: fault == .eac1UnknownRoot || fault == .eac1RogueRoot ? .rogueDocumentVerifier : .documentVerifier,
            holder: holder,
            subject: .terminal,
            chat: fault == .eac1IsTerminal
                ? CHAT(.inspectionSystem, .terminal, authorization: 0x23) : CHAT(.terminal, terminalRights),
            validity: isOld || fault == .eac1ATExpired ? past : fault == .eac1ATFuture ? future : present
        )
        order.extensions = try authority.terminalExtensions(description: hashed)
        order.breaksSignature = fault == .eac1CertSignature
        return try authority.issue(order)
    }

    private func documentVerifierCertificate() throws(CryptoError) -> [UInt8] {
        let fault = options.fault
        let isDirect = options.chain == .direct
        var order = CVAuthority.Order(
            authority: isDirect ? CVAuthority.rootName : CVAuthority.nextRootName,
            signer: isDirect ? .root : .nextRoot,
            holder: CVAuthority.documentVerifierName,
            subject: .documentVerifier,
            chat: CHAT(.documentVerifierNonOfficial, AccessRights(rawValue: .max)),
            validity: fault == .eac1DVExpired ? past : present
        )
        if fault == .eac1UnknownRoot || fault == .eac1RogueRoot {
            (order.signer, order.subject) = (.rogueRoot, .rogueDocumentVerifier)
            if fault == .eac1UnknownRoot { order.authority = "DEROGUE0000001" }
        }
        order.breaksSignature = fault == .eac1DVSignature
        return try authority.issue(order)
    }

    // MARK: The client's answer

    func receiveEAC1(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        try requireOK(message)
        if message.protocolType != "EAC1OutputType" { report.note("the answer to EAC1 has another type") }
        try receiveRights(message)
        guard let access = message.bytes("EFCardAccess"), let idPICC = message.bytes("IDPICC"),
            let challenge = message.bytes("Challenge")
        else { throw .incorrectParameter("EFCardAccess, IDPICC or Challenge is missing or no hexBinary") }
        (self.idPICC, self.challenge) = (idPICC, challenge)
        if challenge.count != TerminalAuthentication.challengeLength {
            report.note("the challenge is not 8 bytes long")
        }
        let references = message.fields("CertificationAuthorityReference")
        report.card += [
            .init("cardAccess", .string(Hex.encode(access))),
            .init("authorityReferences", .array(references.map(JSON.string))),
        ]
        if let response = try replacement("eac1", for: message) { return response }
        guard let infos = try? SecurityInfos(access), let curve = infos.chipAuthenticationCurve else {
            throw .incorrectParameter("EFCardAccess shows no chip authentication of version 2")
        }
        do {
            ephemeral = try EphemeralKey(on: curve)
        } catch {
            throw .internalError("ephemeral key: \(error)")
        }
        return try sendEAC2(message, asked: references)
    }

    private func receiveRights(_ message: PAOSMessage) throws(ConversationError) {
        let asked = options.required.union(options.optional)
        if let bytes = message.bytes("CertificateHolderAuthorizationTemplate") {
            guard let object = try? BERTLV(bytes), let chat = try? CHAT(object) else {
                throw .incorrectParameter("the effective CHAT cannot be read")
            }
            effective = chat.rights
        } else {
            report.note("the answer to EAC1 has no CertificateHolderAuthorizationTemplate")
            effective = asked
        }
        let names = effective.rights.map { JSON.string($0.serviceName) }
        report.client.append(.init("effectiveRights", .array(names)))
        // Without RequiredCHAT the user may refuse all rights; without any CHAT all rights of the certificate are asked for.
        let required = options.sendsRequired ? options.required : []
        let possible = asked.isEmpty || !options.sendsRequired ? asked.union(terminalRights) : asked
        guard effective.isSuperset(of: required) else {
            throw ConversationError(minor: "/sal#insufficientRights", message: "required rights were dropped")
        }
        // Clients add CAN allowed themselves.
        let surplus = effective.subtracting(possible).subtracting(
            options.canAllowed ? AccessRights([.canAllowed]) : []
        )
        if !surplus.isEmpty { report.note("rights that were not asked for: \(surplus.rights.map(\.serviceName))") }
    }
}

extension SecurityInfos {
    /// The first chip authentication of version 2.
    var chipAuthenticationInfo: ChipAuthenticationInfo? { chipAuthentication.first { $0.version == 2 } }

    /// The curve of this chip authentication.
    var chipAuthenticationCurve: Curve? {
        guard let info = chipAuthenticationInfo else { return nil }
        let parameters = chipAuthenticationDomainParameters.first {
            $0.keyID == info.keyID || $0.keyID == nil || info.keyID == nil
        }
        return parameters?.standardized.flatMap { UInt8(exactly: $0) }.flatMap(Curve.init(rawValue:))
    }
}
