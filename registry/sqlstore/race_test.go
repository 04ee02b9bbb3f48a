//go:build race

package sqlstore_test

// underRace says that the race detector is on.
const underRace = true
