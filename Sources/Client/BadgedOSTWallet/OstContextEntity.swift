// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// The kind of an entity.
public enum OstEntityType: String, Sendable, CaseIterable {
    case device, user, array, session, transaction, recoveryOwner, string, dictionary, tokenHolder, boolean
    /// A wallet card. The SDK does not have this kind.
    case card
}

/// What a callback is about.
public final class OstContextEntity: Sendable {
    public let entityType: OstEntityType
    private let json: JSON

    init(_ entity: FlowEntity) {
        (entityType, json) = (OstEntityType(rawValue: entity.type) ?? .dictionary, entity.members)
    }

    /// The members as values of Swift: `[String: Any]`.
    public var entity: Any? { json.any }
}
