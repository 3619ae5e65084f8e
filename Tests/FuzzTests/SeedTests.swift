// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Foundation
import FuzzTargets
import TestSupport
import Testing

/// The seeds of `make fuzz`, without libFuzzer: what was once found, and an input for each branch of a parser.
@Suite("Seeds of the fuzz targets")
struct SeedTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fuzz/corpus")

    @Test("each target has seeds, and each folder of seeds has a target")
    func folders() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path())
        #expect(folders.sorted() == fuzzTargets.keys.sorted())
    }

    @Test("nothing is found in the seeds and beside them", .serialized, arguments: fuzzTargets.keys.sorted())
    func replay(name: String) async throws {
        let target = try #require(fuzzTargets[name])
        let folder = Self.corpus.appending(path: name)
        let seeds = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        #expect(!seeds.isEmpty)
        for seed in seeds {
            let bytes = Array(try Data(contentsOf: folder.appending(path: seed)))
            for (change, input) in [("", bytes)] + Self.neighbours(of: bytes) {
                let findings = Findings()
                // Some targets block their thread, which may not be one of those that run tasks.
                await withCheckedContinuation { continuation in
                    DispatchQueue.global().async {
                        Findings.$current.withValue(findings) { input.withUnsafeBytes { target($0) } }
                        continuation.resume()
                    }
                }
                #expect(findings.texts.isEmpty, "\(seed) \(change)")
            }
        }
    }

    /// The seed that ends at each of its lengths, and with a change of each byte; without `FullTables.areWanted`, at two.
    private static func neighbours(of seed: [UInt8]) -> [(String, [UInt8])] {
        func places(_ limit: Int) -> [Int] {
            let count = min(seed.count, FullTables.areWanted ? limit : 2)
            return (0..<count).map { $0 * seed.count / count }
        }
        return places(64).map { ("cut at \($0)", Array(seed.prefix($0))) }
            + places(256).flatMap { place in
                [seed[place] ^ 0xFF, seed[place] &+ 1].map { byte in
                    var changed = seed
                    changed[place] = byte
                    return ("byte \(place) is \(byte)", changed)
                }
            }
    }

    @Test("a finding is reported")
    func finding() {
        let findings = Findings()
        Findings.$current.withValue(findings) { require(false, "a finding") }
        #expect(findings.texts == ["a finding"])
    }
}
