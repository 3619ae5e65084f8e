// SPDX-License-Identifier: Apache-2.0

/// Finds the word that the user has meant.
package enum Suggestion {
    /// The word that differs least from `word`: it begins with it, or at most two letters differ. nil: there is none.
    package static func closest(to word: String, among words: some Sequence<String>) -> String? {
        guard word.utf8.count <= 64 else { return nil }
        let best = words.map { (distance(word, $0), $0) }.min { $0 < $1 }
        return best.flatMap { $0.0 <= min(2, word.count / 3) ? $0.1 : nil }
    }

    /// `did you mean WORD? `, or nothing. In English, for files of settings.
    package static func question(_ word: String, among words: some Sequence<String>) -> String {
        closest(to: word, among: words).map { "did you mean \($0)? " } ?? ""
    }

    /// How many letters must be added, removed or replaced; 1 for the beginning of a word.
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.lowercased()), Array(right.lowercased()))
        if left.count >= 3, left.count < right.count, right.starts(with: left) { return 1 }
        var row = Array(0...right.count)
        for (index, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (place, other) in right.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[place + 1]
                row[place + 1] = min(replaced, row[place] + 1, row[place + 1] + 1)
            }
        }
        return row[right.count]
    }
}
