// SPDX-License-Identifier: GPL-3.0-or-later
package import Secrets
package import Text

/// The records of a space of the store, for GET_HEALTH.
package struct RecordKind: Sendable {
    let space: StoreSpace
    /// What the records are, in the plural.
    package let name: String
    /// How a person deletes one.
    package let remedy: String
    let isReadable: @Sendable (borrowing Secret) -> Bool

    package init(
        _ space: StoreSpace,
        _ name: String,
        remedy: String,
        isReadable: @escaping @Sendable (borrowing Secret) -> Bool = { _ in true }
    ) {
        (self.space, self.name, self.remedy, self.isReadable) = (space, name, remedy, isReadable)
    }
}

extension Store {
    /// Returns the names of the records of this kind that are damaged, or that a later version has written.
    package func unreadable(_ kind: RecordKind) throws(Failure) -> [String] {
        try transaction { values throws(Failure) in
            try values.records(in: kind.space) { _, content in kind.isReadable(content) ? true : nil }.unreadable
        }
    }
}
