#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh [SECONDS [TARGET...]]: runs the fuzz targets under libFuzzer with the address sanitizer,
# each for this time and up to the longest input that its parser takes, one on each processor. Seeds are in Tests/Fuzz/corpus/TARGET. New inputs go to
# .build-fuzz/corpus, findings to .build-fuzz/found. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
export SWIFT_BACKTRACE=enable=no BADGED_FUZZ=1 LSAN_OPTIONS=suppressions=Tests/lsan.suppressions
echo "building the fuzz targets"
swift build -c release --explicit-target-dependency-import-check error --scratch-path .build-fuzz --product badged-fuzz -Xswiftc -sanitize=fuzzer,address \
    -Xswiftc -use-ld=lld
fuzz=.build-fuzz/release/badged-fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <("$fuzz" 2>/dev/null || true)
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz targets found" >&2; exit 1; }
# longest TARGET: the number of bytes up to which the parser reads. Where these are megabytes, some are enough.
longest() {
    case $1 in
    json-line | paos | tc-token | server-message | antelope-answer | antelope-transaction | typed-data | *-recording) echo 1048576 ;;
    antelope-abi | certificate-search | zip-archive | master-list | directory-export | network-*) echo 524288 ;;
    certificate-description) echo 196608 ;;
    remote-message) echo 135296 ;;
    remote-report | remote-request | driver-* | certificate-chain) echo 131072 ;;
    allow-list | mpin-reply | simple-wallet | enrolment | document-* | mdoc-* | cbor | card-file | card-list | vault-record) echo 65536 ;;
    pkoc-reader-certificate) echo 20087 ;;
    # The longest packet, and the byte of the version.
    broker-packets) echo 16390 ;;
    web-address | web-reference | activation | websocket-* | proxy-answer | remote-*) echo 16384 ;;
    qr-payload) echo 8192 ;;
    *) echo 4096 ;;
    esac
}
# fuzz_one TARGET: prints one line, and the end of the log when something was found.
fuzz_one() {
    target=$1 log=.build-fuzz/found/$1.log
    mkdir -p ".build-fuzz/corpus/$target" ".build-fuzz/found/$target"
    if "$fuzz" "$target" -max_total_time="$seconds" -max_len="$(longest "$target")" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
        -artifact_prefix=".build-fuzz/found/$target/" ".build-fuzz/corpus/$target" "Tests/Fuzz/corpus/$target" \
        >"$log" 2>&1; then
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, nothing found"
    else
        echo "$target: FOUND, see $log"
        tail -n 30 "$log"
    fi
}
export -f fuzz_one longest
export fuzz seconds
mkdir -p .build-fuzz/found
# A target uses one processor.
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I TARGET bash -c 'fuzz_one TARGET' | tee .build-fuzz/found/results
passed=$(grep -c '^[a-z0-9-]*: .* nothing found$' .build-fuzz/found/results || true)
failed=$((${#targets[@]} - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
