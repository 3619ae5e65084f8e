// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import Text

/// The options of a run: the parameters of the TcToken URL. docs/testing.md explains them.
struct ServiceOptions: Sendable {
    enum Mode: String, Sendable { case psk, attached }
    enum Chain: String, Sendable {
        case direct
        /// The link certificate is in EAC1.
        case link
        /// The link certificate is in EAC2, after the client has named the card's authority reference.
        case late
    }

    struct Wrong: Error {
        let message: String
    }

    var mode = Mode.psk
    var required = AccessRights([
        .readDocumentType, .readIssuingState, .readGivenNames, .readFamilyName, .readDateOfBirth, .readAddress,
        .restrictedIdentification, .ageVerification,
    ])
    var optional = AccessRights([
        .readDateOfExpiry, .readDoctoralDegree, .readPlaceOfBirth, .communityIDVerification,
    ])
    var sendsRequired = true
    var transactionInfo: String?
    /// The terms of usage: a text that is repeated to nearly this number of bytes; nil: those of `DescriptionRecipe`.
    var terms: (text: String, bytes: Int)?
    var eidTypes: [String] = []
    var canAllowed = false
    var initializesFramework = false
    var usesAdditionalInput = false
    var chain = Chain.direct
    var reversesCertificates = false
    var includesRoot = false
    /// The number of commands in a Transmit; 0 for all.
    var batch = 0
    /// The Le of READ BINARY.
    var readLength = 256
    var acceptableStatus: [String] = []
    var keepsConnections = true
    var fault: Fault?

    init(_ query: [String: String]) throws(Wrong) {
        func flag(_ name: String, _ standard: Bool) throws(Wrong) -> Bool {
            switch query[name] {
            case nil: standard
            case "1": true
            case "0": false
            default: throw Wrong(message: "\(name) is neither 0 nor 1")
            }
        }
        func number(_ name: String, _ standard: Int, _ range: ClosedRange<Int>) throws(Wrong) -> Int {
            guard let text = query[name] else { return standard }
            guard let value = Int(text), range.contains(value) else { throw Wrong(message: "\(name) is out of range") }
            return value
        }
        func list(_ name: String) -> [String] { (query[name] ?? "").split(separator: ",").map(String.init) }
        func rights(_ name: String, _ standard: AccessRights) throws(Wrong) -> AccessRights {
            guard query[name] != nil else { return standard }
            var rights: [AccessRight] = []
            for word in list(name) {
                guard let right = AccessRight(serviceName: word) else { throw Wrong(message: "unknown right \(word)") }
                rights.append(right)
            }
            return AccessRights(rights)
        }
        func choice<T: RawRepresentable<String>>(_ name: String, _ standard: T) throws(Wrong) -> T {
            guard let text = query[name] else { return standard }
            guard let value = T(rawValue: text) else { throw Wrong(message: "\(name) cannot be \(text)") }
            return value
        }
        mode = try choice("mode", mode)
        required = try rights("required", required)
        optional = try rights("optional", optional)
        sendsRequired = try flag("requiredchat", sendsRequired)
        transactionInfo = query["transaction"]
        if let text = query["terms"], !text.isEmpty { terms = (text, try number("termsbytes", 0, 0...200_000)) }
        eidTypes = list("eidtypes")
        canAllowed = try flag("can", canAllowed)
        initializesFramework = try flag("init", initializesFramework)
        usesAdditionalInput = try flag("additional", usesAdditionalInput)
        chain = try choice("chain", chain)
        reversesCertificates = try flag("reverse", reversesCertificates)
        includesRoot = try flag("cvca", includesRoot)
        batch = try number("batch", batch, 0...100)
        readLength = try number("le", readLength, 0...256)
        if readLength == 0 { readLength = 256 }
        acceptableStatus = list("accept")
        keepsConnections = try flag("keepalive", keepsConnections)
        if let name = query["fault"], !name.isEmpty {
            guard let fault = Fault(rawValue: name) else { throw Wrong(message: "unknown fault \(name)") }
            self.fault = fault
        }
    }
}

extension AccessRight {
    /// The name in the SDK, or DG with the number of the data group.
    var serviceName: String {
        if let name { return name }
        return dataGroup.map { "DG\($0)" } ?? "bit\(rawValue)"
    }

    init?(serviceName: String) {
        guard let right = Self.allCases.first(where: { $0.serviceName == serviceName }) else { return nil }
        self = right
    }

    /// The data group that this right lets a terminal read.
    var dataGroup: UInt8? { (8...29).contains(rawValue) ? rawValue - 7 : nil }
}
