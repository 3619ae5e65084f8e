// SPDX-License-Identifier: Apache-2.0

/// Something that this computer lacks: an element of `healthCheck()`.
public struct OrigoKeysInfo: Sendable, Equatable, CustomStringConvertible {
    public let type: OrigoKeysInfoType
    /// What is wrong and what to do, in English.
    public let description: String

    /// The number of `type`.
    public var intValue: Int { type.rawValue }
}
