// SPDX-License-Identifier: GPL-3.0-or-later
package import VirtualEID

extension VirtualEIDDescription {
    /// Returns the default card with changes.
    package static func card(_ change: (inout VirtualEIDDescription) -> Void = { _ in }) -> VirtualEIDDescription {
        var description = VirtualEIDDescription()
        change(&description)
        return description
    }
}
