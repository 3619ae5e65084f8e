// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Text

/// The POST to the server of a dapp.
struct CallbackPost: Sendable {
    let address: WebAddress
    let body: JSON
    let userAgent: String

    /// The maximum number of bytes of the answer.
    private static let maximumAnswer = 64 * 1024

    /// Sends the body once.
    /// - Returns: why the server did not accept the body, as a text for people; nil if it did.
    func send(_ session: HTTPSession) async -> String? {
        let response: HTTPResponse
        do throws(HTTPFault) {
            response = try await session.run(
                .post(body.bytes, to: address, userAgent: userAgent, maximumLength: Self.maximumAnswer)
            )
        } catch {
            return "\(error.text(Phrase("the server")))"
        }
        guard (200...299).contains(response.status) else {
            let hint = (300...399).contains(response.status) ? ", and redirects are not followed" : ""
            return "the server answered HTTP \(response.status)\(hint)"
        }
        return Self.refusal(response.body)
    }

    /// Reads `{"code":0,"message":""}`. A code above 0 is an error, which the message describes.
    static func refusal(_ bytes: [UInt8]) -> String? {
        guard let json = try? JSON(bytes), json.members != nil else {
            return "the answer of the server is not a JSON object"
        }
        guard let code = json["code"]?.int else {
            // Before `code` SimpleWallet had `success`.
            if let success = json["success"]?.bool { return success ? nil : "the server reports a failure" }
            return "the answer of the server has no code"
        }
        guard code != 0 else { return nil }
        let words = json["message"]?.string ?? json["error"]?.string ?? ""
        return "the server reports code \(code)" + (words.isEmpty ? "" : ": \(words.quoted())")
    }
}
