// SPDX-License-Identifier: GPL-3.0-or-later

/// The purpose of the services of an authority.
package enum AuthorityUse: String, Sendable, Hashable, CaseIterable {
    /// Real cards and real services.
    case productive
    /// Test cards. Developer mode accepts only services of these authorities.
    case test

    /// The folder of the certificates, below the folder of the trust anchors.
    package var subfolder: String {
        switch self {
        case .productive: ""
        case .test: "/test"
        }
    }
}
