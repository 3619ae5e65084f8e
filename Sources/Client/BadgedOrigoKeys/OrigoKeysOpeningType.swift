// SPDX-License-Identifier: Apache-2.0

/// The ways to open a reader.
public enum OrigoKeysOpeningType: Int, Sendable, CaseIterable {
    case unknown = 0
    /// Tap: the reader is very near.
    case proximity = 1
    /// Twist and go: near, with a gesture. Here the program calls `unlockGesture()`.
    case motion = 2
    /// Hands free.
    case seamless = 4
    /// The program chooses the reader.
    case applicationSpecific = 8
    case enhancedTap = 0x40

    /// The name in messages of badged; nil for `unknown`.
    var name: String? { self == .unknown ? nil : "\(self)" }

    init(name: String) { self = Self.allCases.first { $0.name == name } ?? .unknown }

    /// Reads an element of an array of the app: the type itself, its raw value, or a number of Foundation.
    init?(element: Any) {
        if let type = element as? Self {
            self = type
        } else if let number = Int("\(element)"), let type = Self(rawValue: number), type != .unknown {
            self = type
        } else {
            return nil
        }
    }
}

/// What made the app open a reader. badged does not need it.
public enum OrigoKeysUnlockOpeningType: Int, Sendable, CaseIterable {
    case none = 0
    case widget = 1
    case wearable = 2
    /// Twist and go.
    case TG = 3
}
