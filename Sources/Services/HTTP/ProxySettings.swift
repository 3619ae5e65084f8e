// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
import Text

/// An HTTP proxy. It only opens tunnels by CONNECT, so it sees no content of a connection. RFC 9110, 9.3.6.
package struct Proxy: Sendable {
    /// A name and a password for the proxy.
    package final class Credentials: Sendable {
        /// The maximum number of bytes of name and password together.
        package static let maximumCount = 1024

        /// The name, a zero byte, the password, a zero byte.
        private let content: Secret

        /// Reads `NAME:PASSWORD`, optionally with a line end; nil when it is something else.
        package init?(line: UnsafeRawBufferPointer) {
            var line = line[...]
            if line.last == 0x0A { line.removeLast() }
            if line.last == 0x0D { line.removeLast() }
            guard line.count <= Self.maximumCount, let colon = line.firstIndex(of: UInt8(ascii: ":")),
                colon != line.startIndex, line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { return nil }
            let name = line[..<colon].count
            let whole = line
            content = Secret(count: whole.count + 1) { memory in
                memory.copyBytes(from: whole)
                memory[name] = 0
            }
        }

        /// Lends `NAME:PASSWORD`, which `body` must not keep.
        func withLine(_ body: ([UInt8]) -> Void) {
            content.withBytes { bytes in
                var line = Array(bytes.dropLast())
                if let separator = line.firstIndex(of: 0) { line[separator] = UInt8(ascii: ":") }
                body(line)
                line.wipe()
            }
        }

        /// Lends name and password as C strings, which `body` must not keep.
        package func withStrings<R>(_ body: (UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> R) -> R {
            content.withBytes { bytes in
                let name = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                let separator = bytes.firstIndex(of: 0) ?? 0
                return body(name, name.map { $0 + separator + 1 })
            }
        }
    }

    /// `http://HOST:PORT`
    package let address: String
    package let origin: WebAddress.Origin
    package let credentials: Credentials?

    /// Reads `http://HOST:PORT`; nil for anything else, such as a proxy of another kind.
    package init?(_ text: String, _ credentials: Credentials? = nil) {
        let bare = text.hasSuffix("/") ? String(text.dropLast()) : text
        guard let address = WebAddress(bare), !address.isSecure else { return nil }
        let host = address.origin.host
        // Neither a path nor a query, and the port is written out.
        guard address.text.lowercased() == "http://\(host.contains(":") ? "[\(host)]" : host):\(address.origin.port)"
        else {
            return nil
        }
        self.address = address.text
        origin = address.origin
        self.credentials = credentials
    }
}

/// Which connections go through a proxy.
package struct ProxySettings: Sendable {
    /// For https addresses.
    let secure: Proxy?
    /// For http addresses, which only developer mode uses.
    let plain: Proxy?
    /// Hosts that are reached without a proxy, with all names below them.
    let exceptions: [String]

    /// One proxy for everything.
    package init(_ proxy: Proxy) { (secure, plain, exceptions) = (proxy, proxy, []) }

    /// Reads `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`, in lower case or else in upper case, as curl does.
    /// A name and a password may be in the address; others come from `credentials`.
    /// - Throws: `StartError`. A proxy that cannot be used never means a direct connection.
    package init(
        environment: (String) -> String?,
        _ credentials: Proxy.Credentials?
    ) throws(StartError) {
        func proxy(_ names: String...) throws(StartError) -> Proxy? {
            for name in names {
                guard let text = environment(name), !text.isEmpty else { continue }
                guard let proxy = Self.proxy(text, credentials) else {
                    throw .inConfiguration(
                        "the variable \(name) names no proxy that badged can use",
                        hint: "badged uses HTTP proxies: http://HOST:PORT; [eid] proxy reads this variable"
                    )
                }
                return proxy
            }
            return nil
        }
        secure = try proxy("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        // Not HTTP_PROXY: a web server sets it from a header of a request.
        plain = try proxy("http_proxy", "all_proxy", "ALL_PROXY")
        let list = environment("no_proxy") ?? environment("NO_PROXY") ?? ""
        exceptions = list.split(whereSeparator: { $0 == "," || $0 == " " }).map { word in
            let name = word.lowercased()
            return name.hasPrefix("*.")
                ? String(name.dropFirst(2)) : name.hasPrefix(".") ? String(name.dropFirst()) : name
        }
    }

    /// Whether no connection goes through a proxy.
    package var isEmpty: Bool { secure == nil && plain == nil }

    /// The proxy for connections to an origin; nil: directly.
    package func proxy(for origin: WebAddress.Origin) -> Proxy? {
        let isExcepted = exceptions.contains { name in
            name == "*" || origin.host == name || !origin.host.contains(":") && origin.host.hasSuffix("." + name)
        }
        return isExcepted ? nil : origin.isSecure ? secure : plain
    }

    /// Reads an address that may have a name and a password, in percent-encoding.
    private static func proxy(_ text: String, _ credentials: Proxy.Credentials?) -> Proxy? {
        let text = text.includes("://") ? text : "http://" + text
        guard let at = text.lastIndex(of: "@") else { return Proxy(text, credentials) }
        guard text.lowercased().hasPrefix("http://") else { return nil }
        let user = text[text.index(text.startIndex, offsetBy: 7)..<at]
        guard var line = PercentEncoding.decode(user.utf8) else { return nil }
        // A name without a password gets an empty one.
        if !line.contains(UInt8(ascii: ":")) { line.append(UInt8(ascii: ":")) }
        defer { line.wipe() }
        let own = line.withUnsafeBytes { Proxy.Credentials(line: $0) }
        guard let own else { return nil }
        return Proxy("http://" + text[text.index(after: at)...], own)
    }
}

/// Why a proxy opens no tunnel.
package enum ProxyFault: Sendable, Equatable {
    /// It cannot be reached, does not answer, or answers something that is not HTTP.
    case unreachable
    /// It rejects the name and the password that were sent.
    case credentials
    /// It requires a name and a password, and none were sent.
    case login
    /// It requires a login, and offers no method that badged has: neither Basic nor Digest.
    case method
    /// It answered CONNECT with another status than 2xx.
    case refused(status: Int)

    /// `offersOtherMethods`: the answer names methods for a login, and badged has none of them.
    package init(status: Int, offersOtherMethods: Bool, hasCredentials: Bool) {
        switch status {
        // tinyproxy answers 401 to a wrong password.
        case 401, 407: self = offersOtherMethods ? .method : hasCredentials ? .credentials : .login
        case 0, 200...299: self = .unreachable
        default: self = .refused(status: status)
        }
    }
}
