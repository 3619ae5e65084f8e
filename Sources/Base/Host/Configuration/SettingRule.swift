// SPDX-License-Identifier: GPL-3.0-or-later

/// What reads the value of one key of a configuration file into the settings `Root`.
package struct SettingRule<Root>: Sendable {
    package typealias Form<Value> = @Sendable (ConfigurationValue) -> () throws(StartError) -> Value
    package typealias Property<Value> = any WritableKeyPath<Root, Value> & Sendable

    /// - Throws: the value, its place, and which values are allowed.
    package let read: @Sendable (inout Root, ConfigurationValue) throws(StartError) -> Void

    package init(_ read: @escaping @Sendable (inout Root, ConfigurationValue) throws(StartError) -> Void) {
        self.read = read
    }

    /// A value of any form, such as `ConfigurationValue.permissions`.
    package static func form<Value>(_ property: Property<Value>, _ form: @escaping Form<Value>) -> Self {
        Self { all, value throws(StartError) in all[keyPath: property] = try form(value)() }
    }

    /// A value whose empty form is nil.
    package static func optional<Value>(_ property: Property<Value?>, _ form: @escaping Form<Value>) -> Self {
        Self { all, value throws(StartError) in
            all[keyPath: property] = value.text.isEmpty ? nil : try form(value)()
        }
    }

    /// A value whose empty form is an empty list.
    package static func list<Value>(_ property: Property<[Value]>, _ form: @escaping Form<[Value]>) -> Self {
        Self { all, value throws(StartError) in all[keyPath: property] = value.text.isEmpty ? [] : try form(value)() }
    }

    package static func bool(_ property: Property<Bool>) -> Self { form(property, ConfigurationValue.bool) }

    package static func path(_ property: Property<String>) -> Self { form(property, ConfigurationValue.absolutePath) }

    package static func path(_ property: Property<String?>) -> Self {
        optional(property, ConfigurationValue.absolutePath)
    }

    package static func number(_ property: Property<Int>, in range: ClosedRange<Int>) -> Self {
        Self { all, value throws(StartError) in all[keyPath: property] = try value.number(in: range) }
    }

    package static func number(_ property: Property<Int?>, in range: ClosedRange<Int>) -> Self {
        Self { all, value throws(StartError) in all[keyPath: property] = try value.number(in: range) }
    }

    /// One of the words of an enumeration.
    package static func word<Word: RawRepresentable & CaseIterable & SendableMetatype>(
        _ property: Property<Word>
    ) -> Self
    where Word.RawValue == String {
        Self { all, value throws(StartError) in all[keyPath: property] = try value.word() }
    }
}
