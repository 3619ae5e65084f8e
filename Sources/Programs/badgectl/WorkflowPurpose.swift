// SPDX-License-Identifier: GPL-3.0-or-later

/// What a dialogue with a card is for.
enum WorkflowPurpose: Equatable {
    case changePIN
    /// `acceptsAll`: the service may have what it asks for, without a question.
    case authenticate(acceptsAll: Bool)
    /// Whatever a browser begins.
    case serveBrowsers

    /// Name of the command.
    var command: String {
        switch self {
        case .changePIN: "change-pin"
        case .authenticate: "auth"
        case .serveBrowsers: "agent"
        }
    }

    /// What a premature end means.
    var notDone: String {
        switch self {
        case .changePIN: "the PIN was not changed"
        case .authenticate, .serveBrowsers: "the service got nothing"
        }
    }
}
