// SPDX-License-Identifier: Apache-2.0

/// The messages of the workflows with eID cards.
let eidMessages: [any NamedMessage.Type] = [
    AccessRights.self, ServiceCertificate.self, AuthenticationMessage.self, ChangePINMessage.self,
]
