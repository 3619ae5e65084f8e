// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The texts that ask for consent to an authentication.
enum ConsentText {
    /// The question for consent. The capital letter is what Return alone means.
    static func prompt(_ request: ConsentRequest) -> String {
        var answers = [tr("y/N")]
        if !request.rights.optional.isEmpty { answers.append(tr("numbers to tick or untick")) }
        if !request.service.termsOfUsage.isEmpty { answers.append(tr("t: terms of usage")) }
        return tr("Agree? [\(answers.joined(separator: ", "))] ")
    }

    /// The terms of usage, in the words of the service. They have its postal address, too.
    static func terms(_ certificate: ServiceCertificate) -> String {
        let text = certificate.termsOfUsage
        return text.isEmpty
            ? tr("The service has no terms of usage.") : Layout.wrapped(printable(text))
    }

    /// The question for consent in a window, which cannot tick single rights.
    static func choice(_ request: ConsentRequest) -> Choice {
        let rights = request.rights
        let texts = [
            service(request.service, transactionInfo: rights.transactionInfo), self.rights(rights, isNumbered: false),
        ]
        let optional = rights.optional.filter(rights.effective.contains)
        let names = optional.map { "        \(describe($0, rights))" }.joined(separator: "\n")
        return Choice(
            text: texts.joined(separator: "\n\n"),
            appendix: request.service.termsOfUsage.isEmpty ? nil : appendix(request.service),
            yes: tr("Agree"),
            other: optional.isEmpty
                ? nil
                : Choice.Other(
                    button: tr("Only what is required"),
                    question: tr("The service does not require these data. Shall it get them, too?") + "\n" + names,
                    no: tr("Give these, too")
                )
        )
    }

    private static func appendix(_ service: ServiceCertificate) -> Choice.Appendix {
        Choice.Appendix(
            title: tr("Terms of usage"),
            text: terms(service),
            elsewhere: tr("The terms of usage are too long for this window: badgectl shows them in a terminal, with t.")
        )
    }

    /// Describes the service.
    static func service(_ certificate: ServiceCertificate, transactionInfo: String?) -> String {
        var rows = [(tr("service"), certificate.subjectName), (tr("website"), certificate.subjectURL)]
        rows.append((tr("purpose"), certificate.purpose))
        if let transactionInfo { rows.append((tr("message"), transactionInfo)) }
        rows.append((tr("issuer"), certificate.issuerName))
        rows.append((tr("valid"), tr("\(certificate.effectiveDate) to \(certificate.expirationDate)")))
        let shown = rows.filter { !$0.1.isEmpty }
        let left = max(9, (shown.map { Layout.width(of: $0.0.unicodeScalars) }.max() ?? 0) + 2)
        return shown.map { Layout.row($0.0, printable($0.1), at: left) }.joined(separator: "\n")
    }

    /// Describes the service in a few lines, each of bounded length, for a window that asks for a secret.
    static func summary(_ certificate: ServiceCertificate) -> String {
        let rows = [
            (tr("Service"), certificate.subjectName), (tr("Website"), certificate.subjectURL),
            (tr("Purpose"), certificate.purpose),
        ]
        return rows.filter { !$0.1.isEmpty }.map { name, text in
            let words = printable(text).split(whereSeparator: \.isWhitespace).joined(separator: " ")
            // Scalars, since one character may have any number of combining marks.
            let begun = words.unicodeScalars.prefix(longestSummary)
            let shown = begun.endIndex == words.endIndex ? words : String(begun) + "..."
            return Layout.wrapped("\(name): \(shown)", indentation: "  ")
        }.joined(separator: "\n")
    }

    /// The scalars of a row of `summary`, so that all of them fit into a line of pinentry.
    private static let longestSummary = 70

    /// Lists the rights. The optional ones have numbers, or say so in words.
    static func rights(_ rights: AccessRights, isNumbered: Bool = true) -> String {
        var lines = [tr("The service asks for:")]
        for name in rights.required { lines.append("        \(describe(name, rights))") }
        for (index, name) in rights.optional.enumerated() {
            guard isNumbered else {
                let mark = rights.effective.contains(name) ? tr("optional") : tr("optional, not granted")
                lines.append("        \(describe(name, rights)) (\(mark))")
                continue
            }
            let number = String(repeating: " ", count: index < 9 ? 1 : 0) + "\(index + 1)"
            lines.append(" \(number) [\(rights.effective.contains(name) ? "x" : " ")] \(describe(name, rights))")
        }
        if lines.count == 1 { lines.append("        " + tr("no data")) }
        return lines.joined(separator: "\n")
    }

    /// The meaning of an answer to `prompt`.
    enum Decision: Equatable {
        case agreed
        case refused
        /// The rights that are ticked after the change.
        case changed([String])
        case wantsTerms
        case unclear
    }

    /// Reads an answer: `y`, `n`, `t`, or numbers of optional rights to tick or untick.
    static func decision(_ text: String, about rights: AccessRights) -> Decision {
        switch text.asAnswer {
        case _ where text.isYes: return .agreed
        case _ where text.isNo, "": return .refused
        case "t", "terms": return .wantsTerms
        default: break
        }
        var chosen = Set(rights.effective)
        for word in text.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let number = Int(word), rights.optional.indices.contains(number - 1) else { return .unclear }
            let name = rights.optional[number - 1]
            if chosen.remove(name) == nil { chosen.insert(name) }
        }
        return .changed(chosen.sorted())
    }

    /// Describes a right: `FamilyName` becomes `family name`.
    static func describe(_ name: String, _ rights: AccessRights? = nil) -> String {
        switch name {
        case "Address": return tr("postal address")
        case "AgeVerification":
            guard let age = rights?.requiredAge else { return tr("age verification") }
            // The card compares the day, which need not be that of the age.
            let words = rights?.ageVerificationDate.map { day in
                tr("\(age) or older, born on \(printable(day)) or before")
            }
            return tr("age verification") + ": " + (words ?? tr("\(age) or older"))
        case "AddressVerification": return tr("address verification") + (rights?.communityID.map { ": \($0)" } ?? "")
        case "CanAllowed": return tr("the CAN instead of the PIN")
        case "PinManagement": return tr("PIN management")
        case "CommunityID": return tr("municipality")
        case "WriteCommunityID": return tr("write the municipality")
        case "Pseudonym": return tr("pseudonym")
        default: if let name = names[name] { return tr(name) }
        }
        var words = ""
        var last: Character = "A"
        for letter in name {
            if letter.isUppercase, !last.isUppercase { words += " " }
            words.append(letter)
            last = letter
        }
        // Roman numbers stay in upper case, as in `residence permit II`.
        words = words.split(separator: " ").map { $0.allSatisfy { $0 == "I" } ? String($0) : $0.lowercased() }
            .joined(separator: " ")
        return printable(words)
    }

    /// The rights that are fields of the card.
    private static let names: [String: Phrase] = [
        "GivenNames": Phrase("given names"), "FamilyName": Phrase("family name"), "BirthName": Phrase("birth name"),
        "ArtisticName": Phrase("artistic name"), "DoctoralDegree": Phrase("doctoral degree"),
        "DateOfBirth": Phrase("date of birth"), "PlaceOfBirth": Phrase("place of birth"),
        "Nationality": Phrase("nationality"), "DocumentType": Phrase("document type"),
        "IssuingCountry": Phrase("issuing country"), "ValidUntil": Phrase("valid until"),
        "ResidencePermitI": Phrase("residence permit I"), "ResidencePermitII": Phrase("residence permit II"),
        "WriteAddress": Phrase("write address"), "WriteResidencePermitI": Phrase("write residence permit I"),
        "WriteResidencePermitII": Phrase("write residence permit II"),
    ]

    /// Removes control characters, except line ends: a service must not control the terminal.
    private static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 == "\n" || !$0.isControl }))
    }

    /// Why an authentication has failed, what the service has, and a hint for the reason.
    static func failure(_ result: AuthenticationResult, _ known: String) -> CommandFailure {
        // The sentences of badged are in the catalogue, the words of a service are not.
        var text =
            (result.message ?? result.description).map { DaemonWords.text($0).asClause(of: $0) }
            ?? tr("authentication failed")
        if text.hasSuffix(".") { text.removeLast() }
        if let reason = result.reason { text += " (\(reason))" }
        return CommandFailure(printable("\(text): \(known)"), hint: hint(result))
    }

    private static func hint(_ result: AuthenticationResult) -> String {
        switch result.reason {
        case "User_Cancelled", "Establish_Pace_Channel_User_Cancelled": tr("start the authentication again")
        case "Access_Denied": tr("ask the administrator for the permission cards in [access] of badged.conf")
        case "Prompt_Timeout": tr("start the authentication again, and answer each question in time")
        case "Card_Removed": tr("leave the card on the reader until the end, and try again")
        case "Establish_Pace_Channel_Puk_Inoperative": tr("go to the office that issued the card: it can set a new PIN")
        case "Get_TcToken_Invalid_Url":
            tr("services have https addresses; http is for test services, with --developer-mode")
        case "Get_TcToken_Invalid_Redirect_Url": tr("report this to the service, which must repair it")
        case "Get_TcToken_Network_Error":
            switch result.network {
            case .unavailable: tr("badgectl health says what is missing")
            case .lost: tr("start the authentication again")
            case nil: tr("check the network, and [eid] proxy in badged.conf(5); if other services work, tell this one")
            }
        case "Check_Refresh_Address_Proxy_Error": tr("check [eid] proxy in badged.conf(5)")
        case "Browser_Send_Failed": tr("start again on the page of the service")
        case "Pre_Verification_Invalid_Certificate_Chain":
            tr("badgectl health says which authority badged trusts, and where newer certificates are")
        case "Pre_Verification_Certificate_Expired":
            tr("check the date of this computer; badgectl health says whether newer certificates are needed")
        case "Pre_Verification_No_Test_Environment": tr("run badgectl auth without --developer-mode")
        default: CommandFailure.seeLog
        }
    }
}
