package open_test

import (
	"testing"

	"github.com/holdfast/holdfast/storage/open"
)

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"file:///a", "file:///a", true},
		{"file:///a", "file:///a/", true},
		{"file:///a", "file:///a/b", true},
		{"file:///a/../b/x", "file:///b", true},
		{"file:///a", "file:///ab", false},
		{"s3://bucket/p", "s3://bucket/p/q?region=eu-1", true},
		{"s3://bucket", "s3://bucket/p", true},
		{"s3://bucket/p", "s3://bucket/q", false},
		{"s3://bucket/p", "s3://bucket/p?endpoint=http://other.test", false},
		{"s3://a", "file:///a", false},
		{"://", "://", false},
	} {
		if got, turned := open.Overlap(tt.a, tt.b), open.Overlap(tt.b, tt.a); got != tt.want || turned != tt.want {
			t.Errorf("%s and %s: %v, turned round %v; want %v", tt.a, tt.b, got, turned, tt.want)
		}
	}
}
