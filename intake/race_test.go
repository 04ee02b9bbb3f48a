//go:build race

package intake_test

// underRace says that the race detector is on.
const underRace = true
