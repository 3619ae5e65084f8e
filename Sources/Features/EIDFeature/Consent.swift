// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import EService
import Text

/// What a service asks for, and what its user grants. docs/protocol/eid.md, RUN_AUTH.
struct Consent: Sendable {
    let request: AuthenticationRequest
    /// Rights that the service requires.
    let required: AccessRights
    /// Rights that the user may refuse.
    let optional: AccessRights
    /// The optional rights that the user grants; all of them until the user chooses.
    private(set) var chosen: AccessRights
    /// The day for which ages are computed.
    private let today: CVDate

    init(_ request: AuthenticationRequest, today: CVDate) {
        self.request = request
        self.today = today
        let allowed = Self.allowed(request)
        let asked = (request.requiredCHAT, request.optionalCHAT)
        // A service that sends neither template requests all rights of its certificate as optional rights.
        let wished = asked == (nil, nil) ? allowed : asked.1?.rights ?? []
        required = (asked.0?.rights ?? []).intersection(allowed).subtracting(Self.canAllowed)
        // The user always decides whether the CAN may replace the PIN.
        optional = wished.intersection(allowed).subtracting(required).union(Self.canAllowed.intersection(allowed))
        chosen = optional
    }

    private static let canAllowed = AccessRights([.canAllowed])

    /// Rights of the terminal certificate that can be shown to the user. A right without a name is never used.
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

    /// The rights that are sent to the card: required and chosen ones.
    var effective: AccessRights { required.union(chosen) }

    /// Whether the CAN replaces the PIN.
    var isByCAN: Bool { effective.contains(AccessRight.canAllowed) }

    /// Grants exactly these optional rights. A refused choice changes nothing.
    mutating func choose(_ names: [String]) throws(Failure) {
        guard !optional.isEmpty else { throw Failure(.wrongArgument, "No optional access rights available") }
        var rights: [AccessRight] = []
        for name in names {
            guard let right = AccessRight(name: name) else {
                throw Failure(.wrongArgument, "Entry in 'chat' data is invalid")
            }
            guard optional.contains(right) else {
                throw Failure(.wrongArgument, "Entry in 'chat' data is not available")
            }
            rights.append(right)
        }
        chosen = AccessRights(rights)
    }

    // MARK: For the user

    /// The names of the SDK, the most significant right first.
    var requiredNames: [String] { Self.names(of: required) }
    var optionalNames: [String] { Self.names(of: optional) }
    var effectiveNames: [String] { Self.names(of: effective) }

    /// The names of the granted rights with which a service learns something of the card or its holder.
    var revealingNames: [String] {
        Self.names(
            of: AccessRights(
                effective.rights.filter { right in
                    switch right {
                    case .canAllowed, .pinManagement, .writeResidencePermitII, .writeResidencePermitI,
                        .writeCommunityID, .writeAddress:
                        false
                    default: true
                    }
                }
            )
        )
    }

    private static func names(of rights: AccessRights) -> [String] {
        rights.rights.reversed().compactMap(\.name)
    }

    /// The dates that the card compares with its own, `yyyy-MM-dd`.
    var ageVerificationDate: String? { day(.dateOfBirth)?.text }
    var validityDate: String? { day(.dateOfExpiry)?.text }

    /// Digits of the municipality; a service may send only the first ones.
    var communityID: [UInt8]? { request.auxiliaryData?.values[.communityID] }

    /// The age, in full years, to which the date of the age verification corresponds today.
    var requiredAge: Int? { day(.dateOfBirth)?.years(until: Day(today)) }

    private func day(_ kind: AuxiliaryData.Kind) -> Day? {
        request.auxiliaryData?.values[kind].flatMap(Day.init(digits:))
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
            year = number / 10_000
            month = number / 100 % 100
            day = number % 100
        }

        func years(until other: Day) -> Int {
            let isBefore = (other.month, other.day) < (month, day)
            return max(0, other.year - year - (isBefore ? 1 : 0))
        }

        /// `yyyy-MM-dd`
        var text: String { "\(year.padded(to: 4))-\(month.padded(to: 2))-\(day.padded(to: 2))" }
    }
}
