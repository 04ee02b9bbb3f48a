//go:build !race

package checkm_test

// underRace says that the race detector is on.
const underRace = false
