// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// A value that is computed before it is needed, on a thread of the pool, while its user waits for something else: a
/// card, mostly. Computed by the user itself when it is needed before that thread came to it.
package final class Ahead<Value: ~Copyable & Sendable, Failure: Error>: Sendable {
    private enum State: ~Copyable {
        case due
        case made(Value)
        case failed(Failure)
        case taken
    }

    // Held while the value is computed: who comes then waits for it.
    private let state = Mutex<State>(.due)
    private let body: @Sendable () throws(Failure) -> Value

    /// `body` runs once at most, and must not wait for anything.
    package init(_ body: @escaping @Sendable () throws(Failure) -> Value) {
        self.body = body
        Pool.run { [weak self] in self?.make() }
    }

    /// The value; nil when it was taken before.
    package func take() throws(Failure) -> Value? {
        make()
        var made = State.taken
        state.withLock { swap(&$0, &made) }
        switch consume made {
        case .made(let value): return value
        case .failed(let error): throw error
        case .due: return nil
        case .taken: return nil
        }
    }

    private func make() {
        state.withLock { state in
            switch state {
            case .due: break
            default: return
            }
            do throws(Failure) {
                state = .made(try body())
            } catch {
                state = .failed(error)
            }
        }
    }
}
