package config

import "strings"

// closest returns the most similar known name, or "" if none is similar. The common prefix does not
// count.
func closest(name string, known []string) string {
	best, least := "", 1+len(strings.TrimPrefix(name, Prefix+"_"))/5
	for _, k := range known {
		if d := distance(name, k); d <= least && (best == "" || d < distance(name, best)) {
			best = k
		}
	}
	return best
}

// distance returns the number of characters to insert, remove or replace, or of neighbours to swap.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
