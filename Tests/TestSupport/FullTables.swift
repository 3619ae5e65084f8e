// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Chooses between the whole of a large table and a part of it.
package enum FullTables {
    /// Whether every row is wanted: `make test-all` sets BADGED_TEST_ALL=1.
    package static let areWanted = getenv("BADGED_TEST_ALL").map { String(cString: $0) == "1" } ?? false

    /// Chooses the rows to run: all of them when they are wanted, else few rows that have every pair of values.
    ///
    /// `values` gives the values of a row, one for each parameter of the table.
    package static func rows<Row>(of table: [Row], values: (Row) -> [String]) -> [Row] {
        rows(of: table) { pairs(of: values($0)) }
    }

    /// Chooses the rows to run: all of them when they are wanted, else few rows that have everything that `covering` gives.
    package static func rows<Row, Item: Hashable>(of table: [Row], covering items: (Row) -> [Item]) -> [Row] {
        areWanted ? table : cover(table, items)
    }

    /// Chooses the rows for one of several tests that share a table: all of them when they are wanted, else its part.
    package static func part<Row>(_ number: Int, of count: Int, _ table: [Row]) -> [Row] {
        areWanted ? table : table.enumerated().filter { $0.offset % count == number }.map(\.element)
    }

    /// The number of random inputs for a parser: all of them when they are wanted, else a tenth.
    package static func count(_ count: Int) -> Int { areWanted ? count : count / 10 }

    /// Takes the row with most new items, until no row has a new one.
    static func cover<Row, Item: Hashable>(_ table: [Row], _ items: (Row) -> [Item]) -> [Row] {
        // Numbers instead of the items themselves, because a large table has thousands.
        var numbers: [Item: Int] = [:]
        func number(_ item: Item) -> Int {
            let number = numbers[item] ?? numbers.count
            numbers[item] = number
            return number
        }
        var rest = table.map { row in (row, Set(items(row).map(number))) }
        var rows: [Row] = []
        while let best = rest.indices.max(by: { rest[$0].1.count < rest[$1].1.count }), !rest[best].1.isEmpty {
            let (row, covered) = rest.remove(at: best)
            rows.append(row)
            for index in rest.indices { rest[index].1.subtract(covered) }
        }
        return rows
    }

    private static func pairs(of values: [String]) -> [[String]] {
        values.indices.flatMap { first in
            values.indices[(first + 1)...].map { second in ["\(first)", values[first], "\(second)", values[second]] }
        }
    }
}
