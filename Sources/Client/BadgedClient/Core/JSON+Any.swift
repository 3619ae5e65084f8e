// SPDX-License-Identifier: Apache-2.0
package import Text

extension JSON {
    /// The value as a value of Swift: String, Bool, Int, Double, [Any], [String: Any]; nil for null.
    package var any: Any? {
        switch self {
        case .null: nil
        case .bool(let value): value
        case .number(let text): Int(text) ?? Double(text)
        case .string(let text): text
        case .array(let items): items.compactMap(\.any)
        case .object(let members): dictionary(members)
        }
    }

    /// The members of an object as values of Swift; empty for any other value.
    package var dictionary: [String: Any] { dictionary(members ?? []) }

    private func dictionary(_ members: [Member]) -> [String: Any] {
        members.reduce(into: [:]) { $0[$1.key] = $1.value.any }
    }

    /// Reads a value of Swift. Any other value becomes its description.
    package init(any value: Any) {
        // An NSNumber of Foundation casts to Bool, too.
        if type(of: value) == Bool.self, let flag = value as? Bool {
            self = .bool(flag)
            return
        }
        switch value {
        case let value as JSON: self = value
        case let text as String: self = .string(text)
        case let number as Int: self = .number(String(number))
        case let number as any BinaryInteger: self = .number("\(number)")
        case let number as Double: self = number.isFinite ? .number("\(number)") : .null
        case let number as any BinaryFloatingPoint: self = number.isFinite ? .number("\(number)") : .null
        case let items as [Any]: self = .array(items.map(JSON.init(any:)))
        case let members as [String: Any]:
            self = .object(members.map { Member($0.key, JSON(any: $0.value)) })
        case Optional<Any>.none: self = .null
        default: self = .string("\(value)")
        }
    }
}
