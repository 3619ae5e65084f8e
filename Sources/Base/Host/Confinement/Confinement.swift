// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CSeccomp
import Glibc

/// The rights that a program of badged keeps when it reads untrusted input.
///
/// The program drops all other rights before it reads the first untrusted byte, which needs no privilege. An
/// attacker who takes over the program cannot connect to a socket, start a program, or signal or trace another process.
/// The program can open only files that are named here. seccomp(2), landlock(7)
package struct Confinement: Sendable {
    /// The system calls that are allowed. Every other call returns EPERM.
    var calls: [SystemCall]
    /// Files, and folders with everything below them, that may be opened for reading.
    var readable: [String] = []
    /// The same for reading and writing. No file can be created, removed or renamed.
    var writable: [String] = []
    /// Folders in which files can be created, removed and renamed, too.
    var owned: [String] = []

    /// Confines the process for the rest of its life. Landlock holds for this thread and those that it starts from now
    /// on, and not for those that run already: a program with rights to files calls this before it starts a thread.
    ///
    /// A kernel without Landlock (before 5.13, or without it in `lsm=`) limits only the system calls; GET_HEALTH
    /// reports this.
    /// - Throws: `SystemError` if the kernel refuses. The program must then end.
    package func apply() throws(SystemError) {
        Log.open()
        if Landlock.isSupported { try limitFiles() }
        try limitCalls()
    }

    /// Confines the process as `apply` does.
    /// - Returns: false if the kernel refuses, which is logged. The program must then end.
    package func apply(to program: String) -> Bool {
        do throws(SystemError) {
            try apply()
            return true
        } catch {
            Log.error("\(program) does not start, because it cannot drop its privileges: \(error.description)")
            return false
        }
    }

    private func limitFiles() throws(SystemError) {
        let ruleset = clinux_landlock_create()
        guard ruleset >= 0 else { throw SystemError("landlock_create_ruleset") }
        defer { close(ruleset) }
        for (paths, level) in [(readable, CLINUX_MAY_READ), (writable, CLINUX_MAY_WRITE), (owned, CLINUX_MAY_CREATE)] {
            for path in paths where clinux_landlock_allow(ruleset, path, level) != 0 && errno != ENOENT {
                throw SystemError(path)
            }
        }
        guard clinux_landlock_restrict(ruleset) == 0 else { throw SystemError("landlock_restrict_self") }
    }

    private func limitCalls() throws(SystemError) {
        guard let filter = seccomp_init(Self.refusal(EPERM)) else { throw SystemError("seccomp_init", ENOMEM) }
        defer { seccomp_release(filter) }
        try Self.check("seccomp_attr_set", seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1))
        for call in calls {
            let number = seccomp_syscall_resolve_name(call.name)
            // libseccomp or this processor does not have the call, so no code of the program can use it.
            if number == -1 { continue }
            let action = call.error.map(Self.refusal) ?? UInt32(SCMP_ACT_ALLOW)
            let conditions = call.conditions.map(\.comparison)
            let count = UInt32(conditions.count)
            try Self.check(call.name, seccomp_rule_add_array(filter, action, number, count, conditions))
        }
        try Self.check("seccomp", seccomp_load(filter))
    }

    /// SCMP_ACT_ERRNO, a macro that Swift cannot import.
    private static func refusal(_ error: Int32) -> UInt32 { 0x0005_0000 | UInt32(error) }

    private static func check(_ name: String, _ code: Int32) throws(SystemError) {
        if code < 0 { throw SystemError(name, -code) }
    }
}

/// A system call that a `Confinement` allows.
struct SystemCall: Sendable {
    var name: String
    /// All of these must hold for the arguments.
    var conditions: [Condition] = []
    /// The error that the call returns instead of running.
    var error: Int32?

    /// A condition on the low 32 bits of an argument, the only bits that the kernel reads of an `int`; or on a pointer.
    struct Condition: Sendable {
        var comparison: scmp_arg_cmp
    }

    init(_ name: String, _ conditions: Condition..., error: Int32? = nil) {
        self.name = name
        self.conditions = conditions
        self.error = error
    }
}

extension SystemCall.Condition {
    /// The argument has this value.
    static func argument(_ index: UInt32, is value: some BinaryInteger) -> Self {
        argument(index, masked: 0xFFFF_FFFF, is: UInt64(truncatingIfNeeded: value) & 0xFFFF_FFFF)
    }

    /// The bits of the mask have this value.
    static func argument(_ index: UInt32, masked mask: some BinaryInteger, is value: some BinaryInteger) -> Self {
        Self(
            comparison: scmp_arg_cmp(
                arg: index,
                op: SCMP_CMP_MASKED_EQ,
                datum_a: UInt64(truncatingIfNeeded: mask),
                datum_b: UInt64(truncatingIfNeeded: value)
            )
        )
    }

    /// The argument has no bits but these.
    static func argument(_ index: UInt32, within bits: Int32) -> Self {
        argument(index, masked: ~UInt32(bitPattern: bits), is: 0)
    }

    /// The pointer is null.
    static func isNull(_ index: UInt32) -> Self {
        Self(comparison: scmp_arg_cmp(arg: index, op: SCMP_CMP_EQ, datum_a: 0, datum_b: 0))
    }
}
