// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// CAP_NET_ADMIN, which the kernel wants to see once, when its management socket for Bluetooth is opened; capabilities(7).
package enum NetworkCapability {
    private static let number: UInt32 = 12
    /// Tells the program that this one has become which descriptor it gets.
    private static let variable = "BADGED_MANAGEMENT_SOCKET"

    package static var isHeld: Bool { clinux_has_capability(number) != 0 }

    /// Gives it up for the calling thread and those that it starts from now on; so before the first other thread, and
    /// before anything that an exec would lose.
    ///
    /// Where capset(2) is forbidden, as in our unit, the process becomes this program once more: an exec leaves nothing
    /// but the ambient capabilities, and these may be lowered without it. `descriptor` survives, see `inherited`.
    /// - Returns: false when neither works; not at all when the program begins anew.
    package static func giveUp(keeping descriptor: Int32?) -> Bool {
        guard isHeld else { return true }
        if clinux_drop_capability(number) == 0 { return true }
        guard getenv(variable) == nil, let program else { return false }
        setenv(variable, "\(descriptor ?? -1)", 1)
        if let descriptor { clinux_keep_on_exec(descriptor) }
        execv(program, CommandLine.unsafeArgv)
        unsetenv(variable)
        if let descriptor { clinux_set_cloexec(descriptor) }
        return false
    }

    /// What the program had open before it became itself once more; nil: it has not, or had nothing.
    package static var inherited: Int32? {
        guard let text = getenv(variable), let descriptor = Int32(String(cString: text)), descriptor > 2,
            clinux_set_cloexec(descriptor) == 0
        else { return nil }
        return descriptor
    }

    /// Its name, as it stands in the list of processes, comes from this path.
    private static var program: String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count)
        guard (1..<path.count).contains(count) else { return nil }
        return String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
