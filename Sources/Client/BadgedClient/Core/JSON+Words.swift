// SPDX-License-Identifier: Apache-2.0
public import Text

extension JSON {
    /// A text of badged in another language. docs/protocol.md, Texts.
    ///
    /// - Parameters:
    ///   - member: the name of the text.
    ///   - lookUp: gets a template such as `No connection to the phone: {0}`. Returns it in the other language, with the
    ///     same placeholders; nil leaves it in English.
    /// - Returns: nil if this is no object, or has no such text.
    public func text(_ member: String, translatedBy lookUp: (_ template: String) -> String?) -> String? {
        Phrase(member, of: self)?.text(lookUp)
    }
}
