// SPDX-License-Identifier: GPL-3.0-or-later

/// Which readers one client wants to hear of.
package struct ScanFilter: Sendable, Equatable {
    package var openingTypes: OpeningTypes
    /// Lock service codes of Seos-style readers; empty: any, and those whose code is not known. Readers of other
    /// profiles have none and pass.
    package var lockServiceCodes: Set<Int>
    package var profiles: Set<ReaderProfile>

    package init(
        openingTypes: OpeningTypes = .all,
        lockServiceCodes: Set<Int> = [LockServiceCode.usual],
        profiles: Set<ReaderProfile> = ReaderProfile.doors
    ) {
        (self.openingTypes, self.lockServiceCodes, self.profiles) = (openingTypes, lockServiceCodes, profiles)
    }

    package func admits(_ reader: DoorReader) -> Bool {
        guard profiles.contains(reader.profile) else { return false }
        if reader.profile == .seos, !lockServiceCodes.isEmpty {
            guard let code = reader.lockServiceCode, lockServiceCodes.contains(code) else { return false }
        }
        // A beacon opens nothing; who asks for beacons gets them.
        return reader.openingTypes.isEmpty || !reader.openingTypes.isDisjoint(with: openingTypes)
    }
}
