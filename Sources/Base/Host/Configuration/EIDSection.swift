// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// `[eid]`
extension Configuration {
    static let eidKeys: Configuration.KeyTable = [
        "trust_anchors": .path(\.trustAnchors),
        "proxy": .form(\.proxy, ConfigurationValue.proxy),
        "proxy_credentials": .path(\.proxyCredentials),
        "self_information": .optional(\.selfInformation, ConfigurationValue.serviceAddress),
        "developer_mode": .bool(\.allowsDeveloperMode),
        "automatic_pin": .bool(\.allowsAutomaticPINs),
        "date": .optional(\.date, ConfigurationValue.day),
    ]
}

/// `[documents]`
extension Configuration {
    static let documentKeys: Configuration.KeyTable = [
        "anchors": .path(\.documentAnchors),
        "crl_required": .bool(\.requiresDocumentCRLs),
    ]
}

/// `[mdoc]`
extension Configuration {
    static let mdocKeys: Configuration.KeyTable = [
        "anchors": .path(\.mdocAnchors),
        "lists": .list(\.mdocLists, ConfigurationValue.list),
        "identities": .list(\.mdocIdentities, ConfigurationValue.mdocIdentities),
    ]
}

/// The files of a key that signs requests for mobile documents: `[mdoc] identities`.
package struct MdocIdentityFiles: Sendable, Equatable {
    /// The name by which clients choose it.
    package let name: String
    /// The private key.
    package let key: String
    /// The certificates of the chain, the signer first.
    package let chain: String
    /// The EU registration certificate; nil without one.
    package let registration: String?
}

extension ConfigurationValue {
    /// Reads how connections to services are made.
    fileprivate func proxy() throws(StartError) -> ProxyChoice {
        switch text {
        case "none": return .none
        case "environment": return .environment
        default:
            guard !text.contains("@") else {
                // The text is not repeated, since it may hold a password.
                throw .inConfiguration(
                    "\(place) has a name or a password",
                    hint: "put NAME:PASSWORD into a file of its own, and name the file in proxy_credentials"
                )
            }
            guard text.hasPrefix("http://") else { throw refuse("none, environment, http://HOST:PORT") }
            return .address(text)
        }
    }

    /// Names with the files of a key, a chain and perhaps a registration certificate.
    fileprivate func mdocIdentities() throws(StartError) -> [MdocIdentityFiles] {
        var identities: [MdocIdentityFiles] = []
        for word in words {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard (3...4).contains(parts.count), (1...64).contains(parts[0].utf8.count),
                parts[0].utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "/") }),
                parts.dropFirst().allSatisfy({ $0.hasPrefix("/") }),
                !identities.contains(where: { $0.name == parts[0] })
            else {
                throw refuse("a comma-separated list of NAME:KEYFILE:CHAINFILE or NAME:KEYFILE:CHAINFILE:WRPRCFILE")
            }
            identities.append(
                MdocIdentityFiles(
                    name: parts[0],
                    key: parts[1],
                    chain: parts[2],
                    registration: parts.count > 3 ? parts[3] : nil
                )
            )
        }
        return identities
    }

    /// The address of a service that shows a user the data of the own card.
    fileprivate func serviceAddress() throws(StartError) -> String {
        guard text.hasPrefix("https://"), text.utf8.count <= 1024, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw refuse("an address with https://") }
        return text
    }

    /// A day as `yyyy-MM-dd`. Certificates of cards have days of the years 2000 to 2099.
    fileprivate func day() throws(StartError) -> CalendarDay {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let digits = parts.joined().utf8
        guard parts.map(\.count) == [4, 2, 2], digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2]),
            (2000...2099).contains(year), let date = CalendarDay(year: year, month: month, day: day)
        else { throw refuse("a day as in 2026-11-21, of the years 2000 to 2099") }
        return date
    }
}

/// How connections to services are made: `[eid] proxy`.
package enum ProxyChoice: Sendable, Equatable {
    case none
    /// Through the proxy that the environment variables `https_proxy` and `no_proxy` select.
    case environment
    /// Through the HTTP proxy at this address, `http://HOST:PORT`.
    case address(String)
}
