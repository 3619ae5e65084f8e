// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// Warns before an authentication that badged trusts no country authority, because no authentication can succeed then.
enum TrustAnchorAdvice {
    static func check(_ workflow: WorkflowRun) async throws(Failure) {
        let checks: [HealthCheck]
        do throws(ClientError) {
            checks = try await workflow.connection.health()
        } catch {
            // A user may authenticate without the permission to see the health, and an older badged has no such check.
            switch error {
            case .accessDenied, .unknownCommand: return
            default: throw workflow.user.ending ?? Failure(error)
            }
        }
        guard let anchors = checks.first(where: { $0.trustAnchors != nil }), anchors.trustAnchors?.newest == nil else {
            return
        }
        throw Failure(
            .failed,
            "badged trusts no country authority, so no authentication can succeed",
            hint: "import the certificates of the authority: sudo badgectl anchors import"
        )
    }
}
