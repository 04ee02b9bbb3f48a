package sqldb

import "strings"

// WordList returns a few words as one column stores them: each between commas, so that ",WORD,"
// finds it; "" for none. Words have no commas.
func WordList[S ~string](words []S) string {
	if len(words) == 0 {
		return ""
	}
	var b strings.Builder
	for _, w := range words {
		b.WriteString("," + string(w))
	}
	return b.String() + ","
}

// WordsOf is the inverse of WordList.
func WordsOf[S ~string](list string) (words []S) {
	if list == "" {
		return nil
	}
	for w := range strings.SplitSeq(strings.Trim(list, ","), ",") {
		words = append(words, S(w))
	}
	return words
}
