// SPDX-License-Identifier: GPL-3.0-or-later

/// What waits: one element of each user in turn. Nobody waits for more than one element of each other user.
package struct UserQueue<Element> {
    /// In the order of their arrival. nil: of the daemon itself.
    private var elements: [UInt32?: ArraySlice<Element>] = [:]
    /// The users with elements that wait; the first is the next.
    private var users: [UInt32?] = []
    /// Whether root comes before the users who wait.
    private let isRootFirst: Bool

    package init(isRootFirst: Bool = false) { self.isRootFirst = isRootFirst }

    package var isEmpty: Bool { users.isEmpty }

    package mutating func add(_ element: Element, of user: UInt32?) {
        if elements[user] == nil { users.insert(user, at: isRootFirst && user == 0 ? 0 : users.count) }
        elements[user, default: []].append(element)
    }

    package mutating func next() -> Element? {
        guard !users.isEmpty else { return nil }
        let user = users.removeFirst()
        let element = elements[user]?.popFirst()
        if elements[user]?.isEmpty ?? true { elements[user] = nil } else { users.append(user) }
        return element
    }
}
