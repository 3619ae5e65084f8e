// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CTestSupport
import Glibc
import Testing

@testable import Host

// Each test runs in a separate process because it changes process-wide state.
@Suite("The daemon's process", .timeLimit(.minutes(5)))
struct ProcessTests {
    @Test("signals are read in order from the descriptor, and a write to a closed pipe does not end the process")
    func signals() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let signals = try Signals()
            guard signals.next() == nil else { exit(1) }
            for (number, expected) in [(SIGHUP, Signals.Signal.reload), (SIGTERM, .terminate), (SIGINT, .terminate)] {
                // This thread blocks the signals. The other threads of the test started before the mask was set.
                pthread_kill(pthread_self(), number)
                guard signals.next() == expected else { exit(2) }
            }
            guard signals.next() == nil else { exit(3) }
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0, close(ends[0]) == 0 else { exit(4) }
            guard write(ends[1], "x", 1) == -1, errno == EPIPE else { exit(5) }
            exit(7)
        }
    }

    @Test("hardening disables core files, sets the umask 077 and raises the descriptor limit to its maximum")
    func hardening() async {
        await #expect(processExitsWith: .exitCode(7)) {
            ProcessHardening.apply()
            var (core, files) = (rlimit(), rlimit())
            getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &core)
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
            guard core.rlim_cur == 0, core.rlim_max == 0, files.rlim_cur == files.rlim_max else { exit(1) }
            guard umask(0) == 0o077 else { exit(2) }
            exit(7)
        }
    }

    @Test("two descriptors in one message are closed, and end the connection")
    func twoDescriptors() throws {
        var (link, ends): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &link) == 0 && pipe(&ends) == 0)
        defer { for descriptor in link + [ends[0]] { close(descriptor) } }
        for end in ends { clinux_set_cloexec(end) }
        try #require(ctestsupport_pass_twice(link[0], ends[1]) == 0)
        close(ends[1])
        var (note, count) = ([UInt8](repeating: 0, count: 64), Int32(0))
        #expect(clinux_take_descriptor(link[1], &note, &count) == -2)
        // The pipe ends when the last copy of its other end is closed. A program that another test is starting may have one
        // until it is executed.
        var ended = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        #expect(poll(&ended, 1, 240_000) == 1)
        clinux_set_nonblocking(ends[0])
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 0)
    }

    @Test("a child is ended by its own descriptor, and one that has ended already is not mistaken for another process")
    func endOfChild() throws {
        let id = try #require(ChildProcess.start("/bin/sleep", ["1000"]))
        let child = Child(id)
        withExtendedLifetime(child) {
            child.end()
            var info = siginfo_t()
            // WNOWAIT leaves the status to the child's own thread.
            #expect(waitid(P_PID, id_t(id), &info, WEXITED | WNOWAIT) == 0)
        }
        let gone = try #require(ChildProcess.start("/bin/true", []))
        waitpid(gone, nil, 0)
        // The id is free now. Its next process must not be ended.
        #expect(clinux_open_child(gone) == -1)
        // Another process that is no child has no descriptor.
        #expect(clinux_open_child(getppid()) == -1)
        Child(gone).end()
    }

    @Test("a child inherits its standard descriptors and those that it is given")
    func children() throws {
        var (ends, secret): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        // As libpcsclite and libcurl do, without FD_CLOEXEC.
        try #require(pipe(&ends) == 0 && pipe(&secret) == 0)
        defer { for descriptor in secret + [ends[0]] { close(descriptor) } }
        let script = "ls /proc/$$/fd >&3"
        let id = ChildProcess.start("/bin/sh", ["-c", script], descriptors: [ends[1]])
        close(ends[1])
        #expect(id != nil)
        let file = fdopen(dup(ends[0]), "r")
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = fread(&buffer, 1, buffer.count, file)
        let names = String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: "\n").map(String.init)
        // The shell may keep its script open at a number from 10 on.
        #expect(names.compactMap(Int.init).filter { $0 < 10 }.sorted() == [0, 1, 2, 3])
        if let id { waitpid(id, nil, 0) }
    }
}
