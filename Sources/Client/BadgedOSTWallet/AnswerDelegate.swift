// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// Takes the answer of an app to one question. `Answer` is a secret, words, JSON or a consent.
final class AnswerDelegate<Answer: Sendable>: OstBaseDelegate {
    enum Reply: Sendable {
        case answer(Answer)
        case cancelled(OstError)
        /// The question is void.
        case none
    }

    private let shot: OneShot<Reply>

    init(_ shot: OneShot<Reply>) { self.shot = shot }

    // The app has released the delegate, so no answer can follow.
    deinit { shot.fill(.cancelled(OstError("", .userCanceled, message: "the app has not answered"))) }

    func cancelFlow(_ ostError: OstError) { shot.fill(.cancelled(ostError)) }

    fileprivate func fill(_ answer: Answer) { shot.fill(.answer(answer)) }
}

extension AnswerDelegate: OstPinAcceptDelegate where Answer == SecretBox {
    func pinEntered(_ userPin: String) { fill(SecretBox(Secret(userPin.utf8))) }
}

extension AnswerDelegate: OstValidateDataDelegate where Answer == Bool {
    func dataVerified() { fill(true) }
}

extension AnswerDelegate: OstMnemonicsAcceptDelegate where Answer == [String] {
    func mnemonicsEntered(_ mnemonics: [String]) { fill(mnemonics) }
}

extension AnswerDelegate: OstDeviceRegisteredDelegate where Answer == JSON {
    func deviceRegistered(_ apiResponse: [String: Any]) { fill(JSON(any: apiResponse)) }
}
