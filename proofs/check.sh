#!/bin/sh
# Compiles the proofs in a scratch directory, and fails unless every headline theorem rests on Coq's
# own logic alone. Needs coqc (8.16); installs nothing.
set -eu
cd "$(dirname "$0")"

command -v coqc >/dev/null || { echo "coqc is not here: install Debian's coq" >&2; exit 1; }

files="Level1 Level2 Refine Progress Statements"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for f in $files; do cp "$f.v" "$scratch"; done
cd "$scratch"

# Quick and blunt, on top of Print Assumptions below: no such word outside comments or names.
if grep -nwE 'Admitted|admit|give_up|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset +Guard +Checking|bypass_check' ./*.v; then
    echo "FAILED: something is assumed" >&2
    exit 1
fi

for f in $files; do
    start=$(date +%s)
    coqc -q "$f.v" >"$f.out" || { cat "$f.out"; exit 1; }
    echo "$f.v: $(wc -l <"$f.v") lines, $(($(date +%s) - start)) s"
done

# The headline theorems are the names that Statements.v checks, each in the file that its module
# imports last.
theorems=$(awk '/^Import / { file = $NF; sub(/\.$/, "", file) }
                /^Check \(/ { name = $2; sub(/^\(/, "", name); print file "." name }' Statements.v)
{
    echo "Require Level1 Level2 Refine Progress."
    for t in $theorems; do echo "Print Assumptions $t."; done
} >Assumptions.v
coqc -q Assumptions.v >assumptions.out || { cat assumptions.out; exit 1; }

n=$(echo "$theorems" | wc -l)
clean=$(grep -cx 'Closed under the global context' assumptions.out || true)
for t in $theorems; do echo "  $t"; done
if [ "$n" -lt 1 ] || [ "$clean" -ne "$n" ] || [ "$(wc -l <assumptions.out)" -ne "$n" ]; then
    cat assumptions.out
    echo "FAILED: $clean of $n theorems are closed" >&2
    exit 1
fi
echo "$n theorems, each closed under the global context"
