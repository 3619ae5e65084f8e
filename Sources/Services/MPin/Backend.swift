// SPDX-License-Identifier: GPL-3.0-or-later
package import HTTP
package import Text

/// A login server with its relying party.
package struct Backend: Sendable, Equatable {
    /// The address without a slash at the end.
    package let text: String
    /// The folder of the login server, without slashes; may be empty.
    package let prefix: String
    private let address: WebAddress

    /// The folder if the client names none.
    package static let defaultPrefix = "rps"
    /// The folder of MIRACL's service.
    package static let servicePrefix = "rps/v2"

    /// Reads an address and a folder; nil for addresses with a query and for folders that are no path.
    package init?(_ text: String, prefix: String) {
        let text = String(Substring(text.utf8.trimmedEnd { $0 == UInt8(ascii: "/") }))
        let prefix = prefix.split(separator: "/").joined(separator: "/")
        guard text.utf8.count <= 1024, prefix.utf8.count <= 128, !text.contains("?"), !text.contains("#"),
            let address = WebAddress(text), address.text == text, WebAddress("\(text)/\(prefix)/x") != nil,
            !prefix.contains("?"), !prefix.contains("#")
        else { return nil }
        self.text = text
        self.prefix = prefix
        self.address = address
    }

    /// The key that identifies a backend: host, port and path, without the scheme.
    package var key: String {
        let origin = address.origin
        let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        let afterScheme = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
        let path = afterScheme.drop { $0 != "/" }
        return "\(host):\(origin.port)\(path)"
    }

    var settingsAddress: String { prefix.isEmpty ? "\(text)/clientSettings" : "\(text)/\(prefix)/clientSettings" }

    /// Finds an address of the settings. One that begins with a slash is appended to the address of the backend.
    func address(_ text: String) throws(Failure) -> WebAddress {
        let whole = text.hasPrefix("/") ? self.text + text : text
        guard let address = WebAddress(whole) else {
            throw Failure(.responseParseError, "the server names an address that is not http or https")
        }
        return address
    }
}

/// The class of the SDK that a client uses, which decides the kind of server.
package enum Flavour: Sendable, Equatable {
    /// `MPin`: the servers of Apache Milagro.
    case mpin
    /// `MPinMFA`: the service of MIRACL.
    case mfa
}

/// The settings that a login server sends to its clients: clientSettings.
package struct ClientSettings: Sendable {
    package let backend: Backend
    package let flavour: Flavour
    private let json: JSON

    package init(_ backend: Backend, _ json: JSON, _ flavour: Flavour = .mpin) {
        self.backend = backend
        self.flavour = flavour
        self.json = json
    }

    /// Returns a string, a whole number or a boolean member as text. The result is empty for anything else.
    package func parameter(_ name: String) -> String {
        switch json[name] {
        case .string(let text): text
        case .number: json[name]?.int.map { String($0) } ?? ""
        case .bool(let value): value ? "true" : "false"
        case .null, .array, .object, nil: ""
        }
    }

    /// The addresses of MIRACL's service, below the folder of the login server. They are used if the settings do not
    /// name others.
    private static let usual = [
        "registerURL": "/user", "signatureURL": "/signature", "mpinAuthServerURL": "", "dvsRegURL": "/dvsregister",
        "authenticateURL": "/authenticate", "codeStatusURL": "/codeStatus",
    ]

    private func text(_ name: String) throws(Failure) -> String {
        if flavour == .mfa, json[name] == nil, let path = Self.usual[name] { return "/\(backend.prefix)\(path)" }
        guard let text = json[name]?.string, !text.isEmpty else {
            throw Failure(.responseParseError, "clientSettings have no \(name)")
        }
        return text
    }

    /// Checks the addresses without which no user can register or log in.
    func check() throws(Failure) {
        for name in ["registerURL", "signatureURL", "authenticateURL"] { _ = try address(name) }
    }

    var usesPermits: Bool { json["usePermits"]?.bool ?? true }
    /// Hexadecimal.
    func appID() throws(Failure) -> String { try text("appID") }

    /// Returns an address with a suffix: a path and possibly a query.
    package func address(_ name: String, _ suffix: String = "") throws(Failure) -> WebAddress {
        try backend.address(try text(name) + suffix)
    }

    /// Returns the address of the community's trust authority, a slash and a suffix.
    func authority(_ suffix: String) throws(Failure) -> WebAddress {
        let text = try text("certivoxURL")
        return try backend.address((text.hasSuffix("/") ? text : text + "/") + suffix)
    }

    /// The address of a stored time permit; nil without a storage.
    func storedPermit(_ day: PermitDay, _ storageID: String) throws(Failure) -> WebAddress? {
        guard let text = json["timePermitsStorageURL"]?.string, !text.isEmpty else { return nil }
        return try backend.address("\(text)/\(try appID())/\(day.number)/\(storageID)")
    }

    /// Whether an access number can be right: by its length and check digit, if the server uses them.
    package func accepts(accessNumber: String) -> Bool {
        guard !accessNumber.isEmpty, accessNumber.utf8.count <= 64 else { return false }
        let usesCheckSum = json["accessNumberUseCheckSum"]?.bool ?? false
        guard usesCheckSum, (json["cSum"]?.int ?? 1) != 0, json["accessNumberDigits"]?.int == 7 else { return true }
        let digits = accessNumber.utf8.map { Int($0) - 0x30 }
        guard digits.count == 7, digits.allSatisfy({ (0...9).contains($0) }) else { return false }
        let sum = zip(digits.prefix(6), (2...7).reversed()).reduce(0) { $0 + $1.0 * $1.1 }
        return (11 - sum % 11) % 11 % 10 == digits[6]
    }
}
