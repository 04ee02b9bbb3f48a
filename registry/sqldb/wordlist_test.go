package sqldb_test

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry/sqldb"
)

func TestWordList(t *testing.T) {
	for _, tt := range []struct {
		words []string
		list  string
	}{{nil, ""}, {[]string{"a"}, ",a,"}, {[]string{"a", "bc"}, ",a,bc,"}} {
		if got := sqldb.WordList(tt.words); got != tt.list || !slices.Equal(sqldb.WordsOf[string](got), tt.words) {
			t.Errorf("%v: %q, read as %v; want %q", tt.words, got, sqldb.WordsOf[string](got), tt.list)
		}
	}
}
