// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Text
import Wire

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
    /// Kept for programs that ask for it; badged opens no app.
    var scheme: String?

    /// Reads WALLET_INIT.
    init(_ members: Members) throws(OperationFailure) {
        switch try members.required("mode", 1...32) {
        case Mode.mykey.rawValue:
            mode = .mykey
            appKey = try members.required("appKey", 1...255)
            uuid = try members.required("UUID", 1...255)
        case Mode.mykeySimple.rawValue: mode = .mykeySimple
        default: throw OperationFailure(.badField, "mode must be MYKEY or MYKEYSimple")
        }
        name = try members.required("dappName", 1...255)
        icon = try members.text("dappIcon", 0...2048)
        scheme = try members.text("scheme", 0...255)
        _ = try members.bool("disableInstall")
    }

    init(_ mode: Mode, name: String, icon: String?, uuid: String) {
        (self.mode, self.name, self.icon, self.uuid) = (mode, name, icon, uuid)
    }
}

/// The members of a command, or of an object in it. null counts as missing.
struct Members {
    private let find: (StaticString) -> JSON?

    init(_ command: Command) { find = { command.value($0) } }
    init(_ json: JSON) { find = { json["\($0)"] } }

    subscript(_ name: StaticString) -> JSON? {
        let value = find(name)
        return value == .null ? nil : value
    }

    /// A text with a number of bytes in `counts`; nil if it is missing.
    func text(_ name: StaticString, _ counts: ClosedRange<Int>) throws(OperationFailure) -> String? {
        guard let value = self[name] else { return nil }
        guard let text = value.string, counts.contains(text.utf8.count) else {
            throw OperationFailure(
                .badField,
                "\(name) must be a text of \(counts.lowerBound) to \(counts.upperBound) bytes"
            )
        }
        return text
    }

    func required(_ name: StaticString, _ counts: ClosedRange<Int>) throws(OperationFailure) -> String {
        guard let text = try text(name, counts) else { throw OperationFailure(.badField, "\(name) is missing") }
        return text
    }

    func bool(_ name: StaticString) throws(OperationFailure) -> Bool? {
        guard let value = self[name] else { return nil }
        guard let flag = value.bool else { throw OperationFailure(.badField, "\(name) must be true or false") }
        return flag
    }

    func int(_ name: StaticString, _ range: ClosedRange<Int>) throws(OperationFailure) -> Int? {
        guard let value = self[name] else { return nil }
        guard let number = value.int, range.contains(number) else {
            throw OperationFailure(
                .badField,
                "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    /// The name of an account or a permission; nil if it is missing.
    func name(_ name: StaticString) throws(OperationFailure) -> AccountName? {
        guard let text = try text(name, 1...13) else { return nil }
        return try valid(name) { () throws(AntelopeError) in try AccountName(text) }
    }

    func requiredName(_ name: StaticString) throws(OperationFailure) -> AccountName {
        guard let found = try self.name(name) else { throw OperationFailure(.badField, "\(name) is missing") }
        return found
    }
}

/// Names the member whose value is wrong.
func valid<T>(_ name: StaticString, _ body: () throws(AntelopeError) -> T) throws(OperationFailure) -> T {
    do throws(AntelopeError) {
        return try body()
    } catch {
        throw OperationFailure(.badField, "\(name): \(error.text)")
    }
}
