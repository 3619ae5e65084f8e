// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import TestSupport
import Testing

/// Runs each cell of a fault matrix on one of several servers, and expects no secret in their logs.
///
/// Cells that run at once have different servers: with one server each client would receive the READER messages of all
/// cells.
@Loop func sweep<Cell: Sendable>(
    _ cells: [Cell],
    _ makeServer: () async throws -> TestServer,
    run: @escaping @Loop (Cell, TestServer) async throws -> Void
) async throws {
    let queue = Queue(cells)
    var servers: [TestServer] = []
    for _ in 0..<4 { servers.append(try await makeServer()) }
    let workers = servers.map { server in
        Task { @Loop in while !Task.isCancelled, let cell = queue.cells.popFirst() { try await run(cell, server) } }
    }
    try await withTaskCancellationHandler {
        for worker in workers { try await worker.value }
    } onCancel: {
        for worker in workers { worker.cancel() }
    }
    for line in servers.flatMap(\.logged) { #expect(Dialogue.secrets.allSatisfy { !line.contains($0) }, "\(line)") }
}

@Loop private final class Queue<Cell> {
    var cells: ArraySlice<Cell>

    init(_ cells: [Cell]) { self.cells = cells[...] }
}
