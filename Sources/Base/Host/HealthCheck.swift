// SPDX-License-Identifier: GPL-3.0-or-later

/// One line of GET_HEALTH: something that can be right or wrong on this host. docs/protocol.md, HEALTH.
package struct HealthCheck: Sendable, Equatable {
    package let name: String
    package let ok: Bool
    /// What a person can do about the fault; nil when the check is good.
    package let advice: String?
    /// Milliseconds since the fault began, where that is known.
    package let errorAgo: Int64?
    /// The name of the reader that is missing because of the fault, if it was there before.
    package let reader: String?

    package init(_ name: String, ok: Bool, advice: String? = nil, errorAgo: Int64? = nil, reader: String? = nil) {
        (self.name, self.ok, self.advice, self.errorAgo, self.reader) = (name, ok, advice, errorAgo, reader)
    }
}
