# One recipe per job. `just check` is what a change has to pass.

export RUSTUP_DIST_SERVER := "http://127.0.0.1:9"

tools := "PATH=\"$(.ci/tools):$PATH\""

# List the recipes.
default:
    @just --list --unsorted

# Everything that .ci/run runs, which is everything that follows but for the long ones.
check:
    .ci/run

# The tests and the doctests.
test *ARGS:
    cargo test {{ARGS}}

# The scenarios under both checkers; prints counts and outcome sets.
models: loom shuttle

# The scenarios under loom.
loom *ARGS:
    cargo test --features loom -- --nocapture {{ARGS}}

# The scenarios under shuttle.
shuttle *ARGS:
    cargo test --features shuttle -- --nocapture {{ARGS}}

# The scenarios under a checker (loom or shuttle) with another bound: a number, or `none`. May take days.
models-full CHECKER="loom" BOUND="none" *ARGS:
    BOUND={{BOUND}} cargo test -p semaphore-model --features {{CHECKER}} --test models -- --nocapture {{ARGS}}

# The model checker's own command line; `just model --help`.
model *ARGS:
    cargo run --release -p semaphore-model --features shuttle -- {{ARGS}}

# Random schedules, a million of each scenario, from a seed.
explore SEED="1":
    cargo run --release -p semaphore-model --features shuttle -- run all --backend random --seed {{SEED}} --executions 1000000

# Plants each fault of semaphore-model/faults in a copy, and has the models catch it.
faults *ARGS:
    semaphore-model/faults/run {{ARGS}}

# A fuzz target (sequential or wakers) for so many seconds; wants cargo-fuzz, and takes unstable flags of rustc.
fuzz TARGET SECONDS="60":
    RUSTC_BOOTSTRAP=1 cargo fuzz run --features fuzzer {{TARGET}} -- -max_total_time={{SECONDS}}

# The corpus of the fuzz targets, and 2,000 random inputs each, without cargo-fuzz.
corpus:
    cargo test --manifest-path fuzz/Cargo.toml --target-dir target --locked -- --nocapture

# The tests under the address sanitizer, and but for those that forget futures, the leak sanitizer.
sanitize:
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --target-dir target/sanitize --target x86_64-unknown-linux-gnu -p semaphore-core --test contract --test cases --test resize --test blocking
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 cargo test --target-dir target/sanitize --target x86_64-unknown-linux-gnu -p semaphore-core --test wakers

# Ten million requests on real threads, every count exact. A minute or two.
stress:
    cargo test --release -p semaphore-core --test stress -- --ignored --nocapture

# A million cancellations between a live head and a live tail, with an allocator that counts.
storm:
    cargo test --release -p semaphore-core --test storm -- --nocapture --test-threads=1

# The theorems; wants coqc.
proofs:
    proofs/check.sh

# Each execution of the catalogue against the transition system of the proofs.
acceptor:
    cargo test -p semaphore-model --features shuttle --test acceptor -- --nocapture

# Weakens each labelled ordering in a copy, and runs the tests of what a permit publishes. Minutes.
orderings *ARGS:
    .ci/orderings {{ARGS}}

# All rows, against all peers: times, heap, latency, scaling. Wants a quiet machine and half an hour.
bench:
    cargo run --profile bench -p semaphore-benches --bin table -- --markdown
    cargo run --profile bench -p semaphore-benches --bin heap
    cargo run --profile bench -p semaphore-benches --bin latency -- --markdown --plots benches/plots
    cargo run --profile bench -p semaphore-benches --bin scaling -- --markdown --plots benches/plots

# The times, in two or three minutes.
bench-quick:
    cargo run --profile bench -p semaphore-benches --bin table -- --quick

# Instruction counts against their limits; wants valgrind.
bench-ir:
    .ci/instructions

# The library under every set of features.
hack:
    {{tools}} cargo hack check --lib -p semaphore-core --feature-powerset --exclude-features loom,shuttle,default

# A static library without std, linked into a C program and run.
no-std:
    semaphore-core/tests/no_std_consumer/run

# The public API against the checked-in list; wants cargo-public-api 0.52, and an unstable flag of rustdoc.
public-api:
    RUSTC_BOOTSTRAP=1 cargo rustdoc -q -p semaphore-core --lib --features tower,metrics,tracing -- -Z unstable-options --output-format json
    cargo public-api --rustdoc-json target/doc/semaphore_core.json -sss | diff semaphore-core/public-api.txt -

# The public API against the last release; wants cargo-semver-checks, and a release.
semver-checks:
    cargo semver-checks -p semaphore-core

# The thread explosion, and its repair.
importer:
    cargo run --release --example importer

# A thread-per-core executor with the semaphore on its hot path, beside tokio's.
executor *ARGS:
    cargo run --release --example executor -- {{ARGS}}

# Most against least served, beside tokio's and a barging one.
fairness *ARGS:
    cargo run --release --example fairness -- {{ARGS}}

# The SQLite pool; `just pool --help` tells its options.
pool *ARGS:
    cargo run --release --example pool -- {{ARGS}}

# The documentation, with warnings denied.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

# Format everything.
fmt:
    cargo fmt --all

# Clippy, with warnings denied, under each set of features.
clippy:
    cargo clippy --all-targets -- -D warnings
    cargo clippy --all-targets -p semaphore-core --no-default-features -- -D warnings
    cargo clippy --all-targets -p semaphore-core --features tower,metrics,tracing -- -D warnings
    cargo clippy --all-targets -p semaphore-benches -- -D warnings
    cargo clippy --all-targets --features loom -- -D warnings
    cargo clippy --all-targets --features shuttle -- -D warnings

# Licenses, bans and sources of the dependencies.
deny:
    {{tools}} cargo deny check bans licenses sources

# Spelling.
typos:
    {{tools}} typos
