// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders

/// What clients want from the scan.
package struct ScanDemand: Sendable, Equatable {
    package enum Mode: String, Sendable, CaseIterable {
        /// Pauses active scanning most of the time, so that other programs can use the radio.
        case powerSaving
        case performance
    }

    package var mode: Mode
    package var profiles: Set<ReaderProfile>
    /// Empty: all codes.
    package var lockServiceCodes: Set<Int>

    package init(
        mode: Mode = .powerSaving,
        profiles: Set<ReaderProfile> = ReaderProfile.doors,
        lockServiceCodes: Set<Int> = []
    ) {
        (self.mode, self.profiles, self.lockServiceCodes) = (mode, profiles, lockServiceCodes)
    }

    /// The demand that satisfies all `demands`; nil when there is none.
    package static func union(_ demands: some Sequence<ScanDemand>) -> ScanDemand? {
        demands.reduce(nil) { (result: ScanDemand?, next) in
            guard var result else { return next }
            if next.mode == .performance { result.mode = .performance }
            result.profiles.formUnion(next.profiles)
            let wantsAllCodes = result.lockServiceCodes.isEmpty || next.lockServiceCodes.isEmpty
            result.lockServiceCodes = wantsAllCodes ? [] : result.lockServiceCodes.union(next.lockServiceCodes)
            return result
        }
    }
}
