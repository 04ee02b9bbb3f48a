package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// TestRequeue_ChecksAnew: a job that failed on content fails again until its producer corrects the
// content, and then completes.
func TestRequeue_ChecksAnew(t *testing.T) {
	t.Parallel()
	const right, wrong = "what was meant", "what was sent!"
	bag := func(payload string) []byte {
		return zipped(t, map[string][]byte{
			"bag/bagit.txt":           []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
			"bag/manifest-sha256.txt": fmt.Appendf(nil, "%x  data/a.txt\n", sha256.Sum256([]byte(right))),
			"bag/data/a.txt":          []byte(payload),
		})
	}
	var mended atomic.Bool
	either := func(before, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if mended.Load() {
				content(after)(w, r)
				return
			}
			content(before)(w, r)
		}
	}
	server := serve(t, map[string]http.HandlerFunc{
		"/a.txt": either(wrong, right), "/bag.zip": either(string(bag(wrong)), string(bag(right))),
	})
	h := up(t)
	for _, tt := range []struct {
		name, file string
		args, from []string
	}{
		{"a digest", "/a.txt", []string{"--type", "file", "--digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(right)))}, nil},
		{"a bag", "/bag.zip", []string{"--type", "bag"}, []string{"--from", "download"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mended.Store(false)
			s, code := h.submit(append([]string{server + tt.file}, tt.args...)...)
			if code != 6 || len(s.Jobs) != 1 || s.Jobs[0].ErrorClass != "content" {
				t.Fatalf("exit=%d summary=%+v", code, s)
			}
			job := s.Jobs[0].ItemID
			h.must(0, append([]string{"item", "requeue", job}, tt.from...)...)
			h.until("it was looked at again", func() bool { return h.item(job).FinishedAt != nil })
			if it := h.item(job); it.State != "Failed" || it.ErrorClass != "content" || it.RetryCount != 1 {
				t.Errorf("with the source as it was it is %+v", it)
			}
			mended.Store(true)
			h.must(0, append([]string{"item", "requeue", job}, tt.from...)...)
			h.until("it was looked at again", func() bool { return h.item(job).FinishedAt != nil })
			if it := h.item(job); it.State != "Completed" || it.RetryCount != 2 || it.Note != "" {
				t.Errorf("with the source mended it is %+v", it)
			}
			h.must(0, "batch", "update-report", s.BatchID)
			h.watch(s.BatchID)
		})
	}
}
