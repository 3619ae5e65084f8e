// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Scanners
import Server
import Text

extension Arguments {
    func openingType() throws(Failure) -> OpeningType { try word("openingType", OpeningType.words) }

    func optionalOpeningType() throws(Failure) -> OpeningType? {
        try optionalWord("openingType", OpeningType.words)
    }
}

extension OpeningType {
    fileprivate static var words: [(String, OpeningType)] { allCases.map { ($0.name, $0) } }
}

/// The parameters of START_SCAN.
struct ScanSettings {
    /// How advertisements are reported for captures.
    enum Adverts: String, CaseIterable {
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
    ///   - arguments: of START_SCAN.
    ///   - mayCapture: whether the client has the permission that `adverts` needs.
    /// - Throws: a failure for the first wrong parameter.
    init(_ arguments: Arguments, mayCapture: Bool) throws(Failure) {
        let some = 1...Self.longestList
        if let types = try arguments.words("openingTypes", some, OpeningType.words) {
            filter.openingTypes = types.reduce(into: []) { $0.formUnion(OpeningTypes($1)) }
        }
        let codes = LockServiceCode.range
        if let codes = try arguments.list(
            "lockServiceCodes",
            0...Self.longestList,
            of: "a whole number from \(codes.lowerBound) to \(codes.upperBound)",
            { $0.int.flatMap { codes.contains($0) ? $0 : nil } }
        ) {
            filter.lockServiceCodes = Set(codes)
        }
        if let profiles = try arguments.words("profiles", some, ReaderProfile.words) {
            filter.profiles = Set(profiles)
        }
        mode = try arguments.optionalWord("mode", ScanDemand.Mode.words) ?? mode
        adverts = try arguments.optionalWord("adverts", Adverts.words)
        if adverts != nil, !mayCapture { throw arguments.wrong("adverts", "left out: it needs the permission admin") }
        updates = Milliseconds(try arguments.optionalNumber("updates", 0...60_000) ?? Int(updates))
    }
}
