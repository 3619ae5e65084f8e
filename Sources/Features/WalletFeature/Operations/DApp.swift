// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Server
import Text

/// The program that asks, as WALLET_INIT names it.
struct DApp: Sendable, Equatable {
    /// `protocol` of callbacks.
    enum Mode: String, Sendable {
        case mykey = "MYKEY"
        case mykeySimple = "MYKEYSimple"
        case simpleWallet = "SimpleWallet"
    }

    var mode: Mode
    var name: String
    var icon: String?
    /// `appKey` and `UUID` of mode MYKEY.
    var appKey: String?
    var uuid: String = ""

    /// Reads WALLET_INIT.
    init(_ members: Arguments) throws(Failure) {
        mode = try members.word("mode", [("MYKEY", .mykey), ("MYKEYSimple", .mykeySimple)])
        if mode == .mykey {
            appKey = try members.text("appKey", 1...255)
            uuid = try members.text("UUID", 1...255)
        }
        name = try members.text("dappName", 1...255)
        icon = try members.optionalText("dappIcon", 0...2048)
        _ = try members.optionalText("scheme", 0...255)
        _ = try members.flag("disableInstall")
    }

    init(_ mode: Mode, name: String, icon: String?, uuid: String) {
        self.mode = mode
        self.name = name
        self.icon = icon
        self.uuid = uuid
    }
}

/// The members of an operation, or of an object in it.
extension Arguments {
    /// The name of an account or a permission.
    func name(_ name: StaticString) throws(Failure) -> AccountName {
        let text = try text(name, 1...13)
        return try valid(name, AccountName(text))
    }

    func optionalName(_ name: StaticString) throws(Failure) -> AccountName? {
        has(name) ? try self.name(name) : nil
    }
}

/// Names the member whose value is wrong.
func valid<T>(_ name: StaticString, _ value: @autoclosure () throws(Malformed) -> T) throws(Failure) -> T {
    try translating({ (error: Malformed) in Failure(operation: .badField, "\(name): \(error.text)") }, value())
}
