// SPDX-License-Identifier: GPL-3.0-or-later
import Text
import Wire

/// The text of a QR code or a link of SimpleWallet, which WALLET_SIMPLEWALLET accepts.
package struct SimpleWalletText {
    /// `authorize`, `transfer`, `contract` or `sign`.
    package let operation: String

    /// Reads a text; nil if it is refused. `now` is in seconds since 1970.
    package init?(_ text: String, now: Int) {
        let rules = CallbackRules(allowsLoopbackHTTP: false)
        let members = Arguments(.object([]))
        guard let parameter = try? OperationRequest.parameter(.string(text)),
            let request = try? OperationRequest.simpleWallet(parameter, members, rules, now: now)
        else { return nil }
        operation = request.body.kind.rawValue
    }
}
