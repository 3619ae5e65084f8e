// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import TestSupport
import Testing
import Text

@testable import Cards

extension JSON {
    /// The value of a sample of METRICS with these labels.
    fileprivate func metric(_ name: String, _ labels: [String: String] = [:]) -> Int? {
        let family = self["metrics"]?.array?.first { $0["name"]?.string == name }
        let sample = family?["samples"]?.array?.first { sample in
            labels.allSatisfy { sample["labels"]?[$0.key]?.string == $0.value }
        }
        return sample?["value"]?.int
    }
}

@Suite("GET_METRICS", .timeLimit(.minutes(5)))
struct MetricsTests {
    @Test("readers, cards, clients and workflows are counted by fixed words")
    @Loop func counts() async throws {
        let server = try await TestServer(readers: 2)
        let client = try server.connect()
        await server.ready(server.registry.readers.map(\.name))
        var metrics = try #require(await client.ask(#"{"cmd":"GET_METRICS"}"#, "METRICS"))
        #expect(metrics.metric("badged_readers", ["driver": "virtual"]) == 2)
        #expect(metrics.metric("badged_clients") == 1)
        #expect(metrics.metric("badged_workflows", ["workflow": "CHANGE_PIN"]) == nil)
        _ = try #require(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN"))
        _ = try #require(await client.next("INSERT_CARD"))
        metrics = try #require(await client.ask(#"{"cmd":"GET_METRICS"}"#, "METRICS"))
        #expect(metrics.metric("badged_workflows", ["workflow": "CHANGE_PIN"]) == 1)
        await client.send(#"{"cmd":"CANCEL"}"#)
        _ = try #require(await client.next("CHANGE_PIN"))
        metrics = try #require(await client.ask(#"{"cmd":"GET_METRICS"}"#, "METRICS"))
        #expect(metrics.metric("badged_workflows_total", ["workflow": "CHANGE_PIN", "result": "cancelled"]) == 1)
        let names = (metrics["metrics"]?.array ?? []).compactMap { $0["name"]?.string }
        #expect(Set(names).count == names.count && names.allSatisfy { $0.hasPrefix("badged_") })
    }

    @Test("the permission is that of readers")
    @Loop func permission() async throws {
        let server = try await TestServer(readers: 0)
        let client = try server.connect(uid: 1001, .scan)
        #expect(await client.ask(#"{"cmd":"GET_METRICS"}"#, "ACCESS_DENIED") != nil)
    }

    @Test("values beyond the last limit are counted in the histogram")
    func histogram() {
        var histogram = Histogram(1, 2)
        for value in [0.5, 1, 1.5, 3] { histogram.add(value) }
        #expect(histogram.cumulative == [2, 3] && histogram.count == 4 && histogram.sum == 6)
    }
}
