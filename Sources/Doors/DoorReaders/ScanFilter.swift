// SPDX-License-Identifier: GPL-3.0-or-later

/// The readers that one client wants to see.
package struct ScanFilter: Sendable, Equatable {
    package var openingTypes: OpeningTypes
    /// Accepted lock service codes of Seos-style readers; empty: every code, known or not. Readers of other profiles
    /// have no code and always match.
    package var lockServiceCodes: Set<Int>
    package var profiles: Set<ReaderProfile>

    package init(
        openingTypes: OpeningTypes = .all,
        lockServiceCodes: Set<Int> = [LockServiceCode.usual],
        profiles: Set<ReaderProfile> = ReaderProfile.doors
    ) {
        self.openingTypes = openingTypes
        self.lockServiceCodes = lockServiceCodes
        self.profiles = profiles
    }

    package func matches(_ reader: DoorReader) -> Bool {
        guard profiles.contains(reader.profile) else { return false }
        if reader.profile == .seos, !lockServiceCodes.isEmpty {
            guard reader.lockServiceCodes.contains(where: lockServiceCodes.contains) else { return false }
        }
        // Beacons have no opening types; a client gets them when it asks for their profile.
        return reader.openingTypes.isEmpty || !reader.openingTypes.isDisjoint(with: openingTypes)
    }
}
