// SPDX-License-Identifier: Apache-2.0

/// The levels 1 to 3 of the SDK's protocol. docs/protocol.md, API levels.
package enum APILevel: Int, Sendable, CaseIterable, Comparable {
    case one = 1
    case two, three

    package static func < (left: APILevel, right: APILevel) -> Bool { left.rawValue < right.rawValue }
}
