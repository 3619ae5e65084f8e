// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials

extension String {
    /// Only ASCII digits, and at least one.
    public var isNumber: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }
}

extension URL {
    /// An absolute https URL with a host, as `startAuthentication` needs it.
    public var isValidHttpsURL: Bool {
        guard scheme?.lowercased() == "https", let host = host() else { return false }
        return !host.isEmpty
    }
}
