// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

/// Figures of one process from /proc; proc(5).
struct ProcessFigures {
    /// KiB, from smaps_rollup.
    struct Memory {
        var resident = 0.0
        var proportional = 0.0
        var privateDirty = 0.0
    }

    /// Activity of each thread, by its id.
    struct Activity {
        struct Thread {
            /// Voluntary and involuntary context switches; each is followed by one wake-up.
            var switches = 0
            /// Nanoseconds on a processor.
            var runtime = 0
        }

        var threads: [Int: Thread] = [:]

        /// The difference to an earlier time, summed over all threads. The end of a thread counts as a wake-up.
        func since(_ old: Activity) -> Thread {
            var sum = Thread()
            for (id, now) in threads {
                let before = old.threads[id] ?? Thread()
                sum.switches += now.switches - before.switches
                sum.runtime += now.runtime - before.runtime
            }
            sum.switches += old.threads.keys.count { threads[$0] == nil }
            return sum
        }
    }

    let pid: pid_t

    /// The processes that it has started.
    var children: [ProcessFigures] {
        Sysfs.names(in: "/proc").compactMap { pid_t($0) }.filter { process in
            (try? Self.lines("/proc/\(process)/status").contains("PPid:\t\(pid)")) ?? false
        }.map { ProcessFigures(pid: $0) }
    }

    func memory() throws(BenchError) -> Memory {
        var memory = Memory()
        for line in try Self.lines("/proc/\(pid)/smaps_rollup") {
            let words = line.split(separator: " ")
            guard words.count >= 2, let value = Double(words[1]) else { continue }
            switch words[0] {
            case "Rss:": memory.resident = value
            case "Pss:": memory.proportional = value
            case "Private_Dirty:": memory.privateDirty = value
            default: break
            }
        }
        return memory
    }

    /// Milliseconds of all threads on a processor, ended ones too. The C function is clock_getcpuclockid.
    func processorTime() throws(BenchError) -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            throw BenchError(call: "clock_getcpuclockid")
        }
        return Double(time.tv_sec) * 1000 + Double(time.tv_nsec) / 1_000_000
    }

    /// What the process does in some seconds.
    func watch(seconds: Int) throws(BenchError) -> (wakeUps: Double, share: Double, note: String) {
        let before = try activity()
        let start = monotonicNow()
        pause(milliseconds: seconds * 1000)
        let after = try activity()
        let elapsed = Double(monotonicNow() - start) / 1e9
        let sum = after.since(before)
        let note = "\(seconds) s, \(after.threads.count) threads"
        return (Double(sum.switches) / elapsed, Double(sum.runtime) / 1e9 / elapsed, note)
    }

    func activity() throws(BenchError) -> Activity {
        guard let folder = opendir("/proc/\(pid)/task") else { throw BenchError(call: "/proc/\(pid)/task") }
        defer { closedir(folder) }
        var activity = Activity()
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let id = Int(name) else { continue }
            var thread = Activity.Thread()
            for line in try Self.lines("/proc/\(pid)/task/\(name)/status") where line.contains("ctxt_switches") {
                thread.switches += Int(line.split(whereSeparator: { " \t".contains($0) }).last ?? "") ?? 0
            }
            let schedule = try Self.lines("/proc/\(pid)/task/\(name)/schedstat").first ?? ""
            thread.runtime += Int(schedule.split(separator: " ").first ?? "") ?? 0
            activity.threads[id] = thread
        }
        return activity
    }

    /// The lines of a small file.
    static func lines(_ path: String) throws(BenchError) -> [Substring] {
        String(decoding: try contents(path), as: UTF8.self).split(separator: "\n")
    }

    static func contents(_ path: String) throws(BenchError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { throw BenchError(call: path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count >= 0 else { throw BenchError(call: path) }
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }
}
