// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import FuzzTargets
import TestSupport
import Testing

/// No parser of bytes from outside takes more than in proportion to its input. The parsers with a structure that a long
/// run of a text would break have tests beside them.
@Suite("Long texts in the fuzz targets")
struct GrowthTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fuzz/corpus")
    /// Time below this counts as none, in seconds.
    private static let negligible = 0.02
    private static let size = 20_000

    /// The alphabets; without `FullTables.areWanted` those that have made parsers slow.
    private static let alphabets = FullTables.areWanted ? Growth.alphabets : Array(Growth.alphabets.prefix(12))

    @Test(
        "a text of twice the length takes at most 2.5 times as long",
        .serialized,
        arguments: fuzzTargets.keys.sorted()
    )
    func growth(name: String) async throws {
        let target = try #require(fuzzTargets[name])
        let folder = Self.corpus.appending(path: name)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        let seeds = try names.map { Array(try Data(contentsOf: folder.appending(path: $0))) }
        // The longest seed has the most places for a text.
        let seed = seeds.max { $0.count < $1.count } ?? []
        #expect(await Growth.measured { Self.slowPlace(in: seed, target) } == nil)
    }

    /// The first text and place that make a target slow.
    private static func slowPlace(in seed: [UInt8], _ target: (UnsafeRawBufferPointer) -> Void) -> String? {
        for place in places(in: seed) {
            for (alphabet, text) in alphabets {
                func run(_ size: Int) {
                    let input = seed[..<place] + Growth.run(of: text, bytes: size).utf8 + seed[place...]
                    let findings = Findings()
                    Findings.$current.withValue(findings) { Array(input).withUnsafeBytes { target($0) } }
                }
                guard Growth.time(runs: 1, { run(2 * size) }) > negligible else { continue }
                if !Growth.isInProportion(from: size, run) { return "\(alphabet) at \(place) of \(seed.count)" }
            }
        }
        return nil
    }

    /// The start, and places behind a sign that may begin a text.
    private static func places(in seed: [UInt8]) -> [Int] {
        let signs = Set("\":>=\n[(, /<{".utf8)
        let places = [0] + seed.indices.dropFirst().filter { signs.contains(seed[$0 - 1]) } + [seed.count]
        let limit = 3
        guard places.count > limit else { return places }
        return (0..<limit).map { places[$0 * (places.count - 1) / (limit - 1)] }
    }
}
