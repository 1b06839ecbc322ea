# Run me with: bash test.sh
cd "$(dirname "$0")" && . ./slug.sh
passed=0 failed=0
check() {
  local got
  got=$(slug "$1")
  if [ "$got" = "$2" ]; then
    echo "ok - $1" && passed=$((passed + 1))
  else
    echo "not ok - $1: expected '$2', got '$got'" && failed=$((failed + 1))
  fi
}
check 'Hello World' 'hello-world'
check 'Stones, laid one on another' 'stones-laid-one-on-another'
check 'Is it done?' 'is-it-done'
check '(draft) notes' 'draft-notes'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
