package checkm

import "strings"

// validARK reports whether s is ark:/NAAN/name or ark:NAAN/name. The name assigning authority
// number has five or more betanumeric characters. The name has the characters allowed in ARKs, and
// no empty or dot segments, because names become paths.
func validARK(s string) bool {
	rest, ok := strings.CutPrefix(s, "ark:")
	if !ok {
		return false
	}
	naan, name, ok := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if !ok || len(naan) < 5 || strings.Trim(naan, "0123456789bcdfghjkmnpqrstvwxz") != "" {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && strings.IndexByte("=~*+@_$%-./", c) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}
