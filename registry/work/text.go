package work

import "fmt"

// Count is a number with its noun.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Either is the sentence about one, or about several with their number in it.
func Either(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}
