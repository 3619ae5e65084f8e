// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import EService

/// What a service asks for, and what its user leaves of it. docs/protocol.md, ACCESS_RIGHTS.
package struct Consent: Sendable {
    package let request: AuthenticationRequest
    /// The service does not go on without them.
    package let required: AccessRights
    /// The user may strike them out.
    package let optional: AccessRights
    /// Of the optional ones; all, until the user chooses.
    package private(set) var chosen: AccessRights
    /// The day on which ages are counted.
    private let today: CVDate

    package init(_ request: AuthenticationRequest, today: CVDate) {
        (self.request, self.today) = (request, today)
        let allowed = Self.allowed(request)
        let asked = (request.requiredCHAT, request.optionalCHAT)
        // A service that sends neither template leaves all to the user.
        let wished = asked == (nil, nil) ? allowed : asked.1?.rights ?? []
        required = (asked.0?.rights ?? []).intersection(allowed).subtracting(Self.canAllowed)
        // The CAN in the PIN's place is the user's to allow, whether the service asks or not.
        optional = wished.intersection(allowed).subtracting(required).union(Self.canAllowed.intersection(allowed))
        chosen = optional
    }

    private static let canAllowed = AccessRights([.canAllowed])

    /// What the terminal certificate allows and can be shown to the user: a right without a name is never used.
    private static func allowed(_ request: AuthenticationRequest) -> AccessRights {
        let values = request.auxiliaryData?.values ?? [:]
        return AccessRights(
            request.terminalCertificate.chat.rights.rights.filter { right in
                switch right {
                case .ageVerification: values[.dateOfBirth] != nil
                case .communityIDVerification: values[.communityID] != nil
                default: right.name != nil
                }
            }
        )
    }

    /// What the card will be told: required and chosen.
    package var effective: AccessRights { required.union(chosen) }

    /// The CAN opens the card instead of the PIN.
    package var isByCAN: Bool { effective.contains(AccessRight.canAllowed) }

    /// Why a choice is refused; the words are those of the SDK.
    package enum Refusal: String, Error, Sendable {
        case nothingOptional = "No optional access rights available"
        case unknown = "Entry in 'chat' data is invalid"
        case notOptional = "Entry in 'chat' data is not available"
    }

    /// Takes these of the optional rights, and no other. What is refused changes nothing.
    package mutating func choose(_ names: [String]) throws(Refusal) {
        guard !optional.isEmpty else { throw .nothingOptional }
        var rights: [AccessRight] = []
        for name in names {
            guard let right = AccessRight(name: name) else { throw .unknown }
            guard optional.contains(right) else { throw .notOptional }
            rights.append(right)
        }
        chosen = AccessRights(rights)
    }

    // MARK: For the user

    /// The names of the SDK, the most significant right first.
    package var requiredNames: [String] { Self.names(of: required) }
    package var optionalNames: [String] { Self.names(of: optional) }
    package var effectiveNames: [String] { Self.names(of: effective) }

    private static func names(of rights: AccessRights) -> [String] {
        rights.rights.reversed().compactMap(\.name)
    }

    package var transactionInfo: String? { request.transactionInfo }

    /// The limits that the card will be compared with, `yyyy-MM-dd`.
    package var ageVerificationDate: String? { day(.dateOfBirth)?.text }
    package var validityDate: String? { day(.dateOfExpiry)?.text }

    /// Digits of the municipality, perhaps only the first ones.
    package var communityID: [UInt8]? { request.auxiliaryData?.values[.communityID] }

    /// The age that the date of the age verification means today, in full years.
    package var requiredAge: Int? { day(.dateOfBirth)?.years(until: Day(today)) }

    private func day(_ kind: AuxiliaryData.Kind) -> Day? {
        request.auxiliaryData?.values[kind].flatMap(Day.init(digits:))
    }

    /// Who asks, as CERTIFICATE tells it.
    package struct Certificate: Sendable, Equatable {
        package let issuerName: String
        package let issuerURL: String
        package let subjectName: String
        package let subjectURL: String
        package let termsOfUsage: String
        package let purpose: String
        /// `yyyy-MM-dd`
        package let effectiveDate: String
        package let expirationDate: String
    }

    package var certificate: Certificate {
        let description = request.description
        return Certificate(
            issuerName: description.issuerName,
            issuerURL: description.issuerURL ?? "",
            subjectName: description.subjectName,
            subjectURL: description.subjectURL ?? "",
            termsOfUsage: description.termsOfUsage,
            purpose: description.purpose,
            effectiveDate: Day(request.terminalCertificate.effectiveDate).text,
            expirationDate: Day(request.terminalCertificate.expirationDate).text
        )
    }
}

extension Consent {
    /// A day of any year.
    private struct Day {
        let year: Int
        let month: Int
        let day: Int

        init(_ date: CVDate) { (year, month, day) = (date.year, date.month, date.day) }

        /// YYYYMMDD in ASCII digits. TR-03110-3 A.6.5.2.
        init?(digits: [UInt8]) {
            guard digits.count == 8, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            (year, month, day) = (number / 10_000, number / 100 % 100, number % 100)
        }

        func years(until other: Day) -> Int {
            let isBefore = (other.month, other.day) < (month, day)
            return max(0, other.year - year - (isBefore ? 1 : 0))
        }

        /// `yyyy-MM-dd`
        var text: String {
            func padded(_ number: Int, _ count: Int) -> String {
                let digits = String(number)
                return String(repeating: "0", count: max(0, count - digits.count)) + digits
            }
            return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
        }
    }
}
