// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension JSON {
    /// Copies of this value with one change each: another value, a further, a missing, a repeated or a renamed member,
    /// a further or a missing item of an array. `place` names the change.
    package func changes(at place: String = "") -> [(place: String, value: JSON)] {
        switch self {
        case .null: return [(place, .bool(true))]
        case .bool(let value): return [(place, .bool(!value))]
        case .number(let text): return [(place, .number(text == "7" ? "6" : "7"))]
        case .string(let text):
            // A digit of data, and otherwise a further character.
            guard text.hasPrefix("0x"), let last = text.last, last.isHexDigit else {
                return [(place, .string(text + "x"))]
            }
            return [(place, .string(text.dropLast() + (last == "7" ? "6" : "7")))]
        case .array(let items):
            var changes = items.enumerated().flatMap { index, item in
                item.changes(at: "\(place)[\(index)]").map { change in
                    (change.place, JSON.array(items.replacing(index, by: change.value)))
                }
            }
            if let last = items.last {
                changes.append(("\(place)[] twice", .array(items + [last])))
                changes.append(("\(place)[] away", .array(items.dropLast())))
            }
            return changes
        case .object(let members):
            var changes = members.enumerated().flatMap { index, member in
                member.value.changes(at: "\(place).\(member.key)").map { change in
                    (change.place, JSON.object(members.replacing(index, by: Member(member.key, change.value))))
                }
            }
            changes.append(("\(place) and x", .object(members + [Member("x", .number("1"))])))
            for (index, member) in members.enumerated() {
                let name = "\(place).\(member.key)"
                changes.append(("\(name) twice", .object(members + [member])))
                changes.append(("another \(name) before", .object([Member(member.key, .string("y"))] + members)))
                changes.append(("\(name) away", .object(members.filter { $0.key != member.key })))
                changes.append(
                    ("\(name) renamed", .object(members.replacing(index, by: Member(member.key + "x", member.value))))
                )
            }
            return changes
        }
    }
}

extension Array {
    fileprivate func replacing(_ index: Int, by element: Element) -> Self {
        var copy = self
        copy[index] = element
        return copy
    }
}
