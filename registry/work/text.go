package work

import "fmt"

// Count returns a number with its noun.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Either returns one if n is 1, and otherwise the format several with n.
func Either(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}
