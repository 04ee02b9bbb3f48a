package sqldb

import "strings"

// WordList is a few words as one column has them: each between commas, so that one is found by
// ",WORD,"; "" for none. No word has a comma.
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
