package sqlstore_test

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry/sqlstore"
)

func TestWordList(t *testing.T) {
	for _, tt := range []struct {
		words []string
		list  string
	}{{nil, ""}, {[]string{"a"}, ",a,"}, {[]string{"a", "bc"}, ",a,bc,"}} {
		if got := sqlstore.WordList(tt.words); got != tt.list || !slices.Equal(sqlstore.WordsOf(got), tt.words) {
			t.Errorf("%v: %q, read as %v; want %q", tt.words, got, sqlstore.WordsOf(got), tt.list)
		}
	}
}
