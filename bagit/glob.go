package bagit

import (
	"slices"
	"unicode/utf8"
)

// matches reports whether a path equals the pattern or matches it as in glob(7). Unlike there, *
// also matches slashes: "*" is every path, "dir/*" everything below dir. A bracket that is not
// closed stands for itself. The time is at worst the product of both lengths.
func matches(pattern, name string) bool {
	return pattern == name || glob(pattern, name)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

func glob(pattern, name string) bool {
	star, retry := -1, 0 // the position of the last *, and the end of what it matched so far
	p, n := 0, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, retry = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if dp, dn, ok := globOne(pattern[p:], name[n:]); ok {
				p, n = p+dp, n+dn
				continue
			}
		}
		if star < 0 {
			return false
		}
		retry++
		p, n = star+1, retry
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globOne matches one character, and returns the lengths of pattern and name that it consumed.
func globOne(pattern, name string) (dp, dn int, ok bool) {
	c, size := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return 1, size, true
	case '[':
		if end := setEnd(pattern); end > 0 {
			return end + 1, size, inSet(pattern[1:end], c)
		}
	}
	return 1, 1, pattern[0] == name[0]
}

// setEnd returns where the set at the start of the pattern ends, or -1. A ] that comes first
// belongs to the set.
func setEnd(pattern string) int {
	i := 1
	if i < len(pattern) && pattern[i] == '!' {
		i++
	}
	if i < len(pattern) && pattern[i] == ']' {
		i++
	}
	for ; i < len(pattern); i++ {
		if pattern[i] == ']' {
			return i
		}
	}
	return -1
}

func inSet(set string, c rune) bool {
	want := true
	if set[0] == '!' && len(set) > 1 {
		set, want = set[1:], false
	}
	runes := []rune(set)
	for i := 0; i < len(runes); i++ {
		lo, hi := runes[i], runes[i]
		if i+2 < len(runes) && runes[i+1] == '-' {
			hi = runes[i+2]
			i += 2
		}
		if lo <= c && c <= hi {
			return want
		}
	}
	return !want
}
