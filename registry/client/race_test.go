//go:build race

package client_test

// underRace says that the race detector is on.
const underRace = true
