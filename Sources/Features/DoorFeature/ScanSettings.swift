// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Scanners
import Text
import Wire

/// The error for a wrong parameter of START_SCAN.
struct ParameterError: Error {
    let text: String

    init(_ text: String) { self.text = text }
    init(parameter: String) { text = "Parameter '\(parameter)' is invalid" }
}

/// The parameters of START_SCAN.
struct ScanSettings {
    /// How advertisements are reported for captures.
    enum Adverts: String {
        /// Each address is replaced by a pseudonym, which stays the same for a day.
        case hashed
        case raw
    }

    var filter = ScanFilter()
    var mode = ScanDemand.Mode.powerSaving
    var adverts: Adverts?
    /// The shortest time between two messages about one reader.
    var updates: Milliseconds = 500

    /// The largest number of entries in a list.
    private static let longestList = 1000

    /// Parses the parameters.
    /// - Parameters:
    ///   - command: START_SCAN.
    ///   - mayCapture: whether the client has the permission that `adverts` needs.
    /// - Throws: `ParameterError` for the first wrong parameter.
    init(_ command: Command, mayCapture: Bool) throws(ParameterError) {
        if let types = try Self.list(command, "openingTypes", { $0.string.flatMap(OpeningType.init(name:)) }) {
            guard !types.isEmpty else { throw ParameterError(parameter: "openingTypes") }
            filter.openingTypes = types.reduce(into: []) { $0.formUnion(OpeningTypes($1)) }
        }
        if let codes = try Self.list(
            command,
            "lockServiceCodes",
            { $0.int.flatMap { LockServiceCode.range.contains($0) ? $0 : nil } }
        ) {
            filter.lockServiceCodes = Set(codes)
        }
        if let profiles = try Self.list(command, "profiles", { $0.string.flatMap(ReaderProfile.init(rawValue:)) }) {
            guard !profiles.isEmpty else { throw ParameterError(parameter: "profiles") }
            filter.profiles = Set(profiles)
        }
        mode = try Self.word(command, "mode", ScanDemand.Mode.init(rawValue:)) ?? mode
        adverts = try Self.word(command, "adverts", Adverts.init(rawValue:))
        if adverts != nil, !mayCapture { throw ParameterError("Parameter 'adverts' needs the permission admin") }
        switch command.int("updates") {
        case .missing: break
        case .invalid: throw ParameterError(parameter: "updates")
        case .value(let number):
            guard let number, (0...60_000).contains(number) else { throw ParameterError(parameter: "updates") }
            updates = Milliseconds(number)
        }
    }

    private static func list<Value>(
        _ command: Command,
        _ key: StaticString,
        _ read: (JSON) -> Value?
    ) throws(ParameterError) -> [Value]? {
        switch command.array(key) {
        case .missing: return nil
        case .invalid: throw ParameterError(parameter: key.description)
        case .value(let items):
            let values = items.prefix(longestList).compactMap(read)
            guard values.count == items.count else { throw ParameterError(parameter: key.description) }
            return values
        }
    }

    private static func word<Value>(
        _ command: Command,
        _ key: StaticString,
        _ read: (String) -> Value?
    ) throws(ParameterError) -> Value? {
        switch command.string(key) {
        case .missing: return nil
        case .invalid: throw ParameterError(parameter: key.description)
        case .value(let text):
            guard let value = read(text) else { throw ParameterError(parameter: key.description) }
            return value
        }
    }
}
