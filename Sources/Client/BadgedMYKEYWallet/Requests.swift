// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials

/// A value that names the user of an app: a UUID, or any text.
public protocol MYKEYIdentifier: Sendable {
    var uuidString: String { get }
}

extension String: MYKEYIdentifier {
    public var uuidString: String { self }
}

extension UUID: MYKEYIdentifier {}

/// A number of a request: text with decimal digits, such as `"1.3100"`, or a number of Swift. Text keeps all its
/// digits.
public protocol MYKEYNumber: Sendable {
    /// Decimal digits.
    var decimalText: String { get }
}

extension String: MYKEYNumber {
    public var decimalText: String { self }
}

extension Int: MYKEYNumber {
    public var decimalText: String { String(self) }
}

extension Double: MYKEYNumber {
    public var decimalText: String { DecimalText.of(self) }
}

// MARK: The app

/// The app and its user, for `initWallet`.
public final class InitRequest {
    /// Names the app.
    public var appKey = ""
    /// Names the user of the app.
    public var UUID: (any MYKEYIdentifier)?
    public var dappName = ""
    /// The address of an icon.
    public var dappIcon = ""
    /// The scheme of URLs that open the app; see `MYKEYWallet.handleUrl`.
    public var scheme = ""
    /// Has no effect: there is nothing to install.
    public var disableInstall = false
    /// Has no effect: badged does not contact servers of MYKEY.
    public var mykeyServer = ""
    /// Has no effect: the user agrees to each request.
    public var contractPromptFree = false

    public init() {}
}

/// The app, for `initWalletSimple`.
public final class InitSimpleRequest {
    public var dappName = ""
    /// The address of an icon.
    public var dappIcon = ""
    /// The scheme of URLs that open the app; see `MYKEYWallet.handleUrl`.
    public var scheme = ""
    /// Has no effect: there is nothing to install.
    public var disableInstall = false
    /// Has no effect: the user agrees to each request.
    public var contractPromptFree = false

    public init() {}
}

// MARK: Operations

/// What all requests have.
public class BaseRequest {
    /// What the app says about the request.
    public var info = ""
    /// The address to which badged sends the result; empty: none.
    public var callbackUrl = ""
    /// Has no effect: the chain is that of badged's configuration.
    public var chain = "EOS"
    /// The permission of the account that signs; empty: `active`. The SDK of MYKEY does not have this member.
    public var permission = ""

    public init() {}
}

/// Binds an account and a card to the user of the app.
public final class AuthorizeRequest: BaseRequest {
    /// The name of the user at the app.
    public var userName = ""
    /// The account of the chain. The app MYKEY knew the account of its user; here the request names it. Empty:
    /// `userName`.
    public var account = ""

    /// Another spelling of `callbackUrl`.
    public var callBackUrl: String {
        get { callbackUrl }
        set { callbackUrl = newValue }
    }
}

/// Sends tokens.
public final class TransferRequest: BaseRequest {
    /// The account that pays; empty: the account that is bound.
    public var from = ""
    public var to = ""
    /// Such as `"1.3100"`.
    public var amount: any MYKEYNumber = ""
    /// Such as `EOS`.
    public var symbol = ""
    /// The account of the token's contract, such as `eosio.token`.
    public var contractName = ""
    /// To how many decimals `amount` is extended; empty or 0: the digits of `amount` count.
    public var decimal: any MYKEYNumber = ""
    public var memo = ""
    /// The number of the order at the app.
    public var orderId = ""
}

/// Calls actions of contracts in one transaction.
public final class ContractRequest: BaseRequest {
    /// The number of the order at the app.
    public var orderId = ""
    public var actions: [BaseAction] = []
    /// The account that signs; empty: the account that is bound. The SDK of MYKEY does not have this member.
    public var account = ""
}

/// Signs a text.
public final class SignRequest: BaseRequest {
    public var message = ""
    /// The account that signs; empty: the account that is bound. The SDK of MYKEY does not have this member.
    public var account = ""
}

// MARK: Actions

/// An action of a `ContractRequest`.
public class BaseAction {
    /// The account of the contract.
    public var account = ""
    /// The name of the action.
    public var name = ""
    /// What the app says about the action.
    public var info = ""

    public init() {}
}

/// Any action of a contract.
public final class ContractAction: BaseAction {
    /// The arguments, as the ABI of the contract names them: a dictionary of values that JSON has, or the text of a
    /// JSON object.
    public var data: Any = ""
}

/// The action `transfer` of a token.
public final class TransferAction: BaseAction {
    public var data = TransferData()
}

/// The arguments of the action `transfer`.
public final class TransferData {
    public var from = ""
    public var to = ""
    /// Amount and symbol, such as `1.3100 EOS`.
    public var quantity = ""
    public var memo = ""

    public init() {}
}

/// Names of actions.
public enum WalletActionConstants: String, Sendable, CaseIterable {
    case LOGIN = "login"
    case TRANSFER = "transfer"
    case TRANSACTION = "transaction"
    case SIGN = "sign"
}

/// Writes numbers without an exponent.
enum DecimalText {
    /// The shortest decimal digits that name the number; empty for a number that has none, such as infinity.
    static func of(_ number: Double) -> String {
        guard number.isFinite else { return "" }
        let text = number.description
        guard let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) else {
            return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
        }
        let mantissa = text[..<mark]
        let sign = mantissa.hasPrefix("-") ? "-" : ""
        let parts = mantissa.drop { $0 == "-" }.split(separator: ".")
        let fraction = parts.count > 1 && parts[1] != "0" ? String(parts[1]) : ""
        let digits = (parts.first ?? "") + fraction
        // The place of the point in `digits`.
        let point = (parts.first?.count ?? 0) + exponent
        if point <= 0 { return "\(sign)0." + String(repeating: "0", count: -point) + digits }
        if point >= digits.count { return sign + digits + String(repeating: "0", count: point - digits.count) }
        return sign + digits.prefix(point) + "." + digits.dropFirst(point)
    }
}
