// SPDX-License-Identifier: GPL-3.0-or-later
@main struct Program {
    static func main() {}
}
