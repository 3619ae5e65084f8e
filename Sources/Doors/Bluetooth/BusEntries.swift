// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The entries of a dictionary in a message, such as `{sa{sv}}`, one after another.
package struct BusEntries {
    private let message: BusMessage
    private let contents: String
    private var isInEntry = false

    package init(_ message: BusMessage, _ contents: String) throws(Malformed) {
        self.message = message
        self.contents = contents
        try message.enter("a", "{\(contents)}")
    }

    /// Enters the next entry, whose key and value must be read before the next call.
    /// - Returns: false after the last entry, when the dictionary has been left.
    package mutating func next() throws(Malformed) -> Bool {
        if isInEntry { try message.leave() }
        isInEntry = try message.hasNext()
        if isInEntry { try message.enter("e", contents) }
        return isInEntry
    }
}

/// The entries of an `a{sv}` whose key and type are known; others are skipped.
package struct BusProperties {
    private let message: BusMessage
    private let types: [String: String]
    private var entries: BusEntries
    private var isInValue = false

    package init(_ message: BusMessage, _ types: [String: String]) throws(Malformed) {
        self.message = message
        self.types = types
        self.entries = try BusEntries(message, "sv")
    }

    /// The key of the next property, whose value must be read before the next call; nil after the last one.
    package mutating func next() throws(Malformed) -> String? {
        if isInValue { try message.leave() }
        isInValue = false
        while try entries.next() {
            let key = try message.string()
            if let type = types[key], try message.variantType() == type {
                try message.enter("v", type)
                isInValue = true
                return key
            }
            try message.skip("v")
        }
        return nil
    }
}

/// The interfaces of all objects in the answer to GetManagedObjects.
package struct BusObjects {
    private let message: BusMessage
    private var objects: BusEntries
    private var path = ""
    private var interfaces: BusEntries?

    package init(_ message: BusMessage) throws(Malformed) {
        self.message = message
        self.objects = try BusEntries(message, "oa{sa{sv}}")
    }

    /// The next interface, with the path of its object; its properties must be read before the next call. nil after the
    /// last one.
    package mutating func next() throws(Malformed) -> (path: String, interface: String)? {
        while true {
            if try interfaces?.next() == true { return (path, try message.string()) }
            guard try objects.next() else { return nil }
            path = try message.string("o")
            interfaces = try BusEntries(message, "sa{sv}")
        }
    }
}
