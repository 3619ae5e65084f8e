// SPDX-License-Identifier: GPL-3.0-or-later
package import VirtualEID

extension VirtualEIDDescription {
    /// Returns the default card with changes.
    package static func card(_ change: (inout VirtualEIDDescription) -> Void = { _ in }) -> VirtualEIDDescription {
        var description = VirtualEIDDescription()
        change(&description)
        return description
    }

    /// Returns a card without data that uses NIST P-256 for PACE, which libcrypto computes much faster than
    /// brainpoolP256r1.
    package static func quick(_ change: (inout VirtualEIDDescription) -> Void = { _ in }) -> VirtualEIDDescription {
        card { description in
            description.files = [quickCardAccess]
            change(&description)
        }
    }

    /// EF.CardAccess of the default card, with PACE on standardized domain parameters 12.
    package static let quickCardAccess = File(
        fileID: 0x011C,
        shortFileID: 0x1C,
        content: hex(
            """
            3181C2300D060804007F00070202020201023012060A04007F000702020302020201020201293012060A04007F0007020204\
            020202010202010C301C060904007F000702020302300C060704007F0007010202010D020129302B060804007F0007020206\
            161F68747470733A2F2F6261646765642E6578616D706C652F63617264696E666F303E060804007F00070202083132301206\
            0A04007F0007020203020202010202012D301C060904007F000702020302300C060704007F0007010202010D02012D
            """
        )
    )
}
