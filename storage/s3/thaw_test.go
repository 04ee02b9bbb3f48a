package s3_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// archive stands for S3's archives, which no service that runs here has: it answers what S3
// documents for an object of such a class.
type archive struct {
	class, tier string
	restore     string   // x-amz-restore, as it is told now
	asked       []string // bodies of RestoreObject
	refuse      string   // code that RestoreObject answers
}

func (a *archive) serve(p *proxy) {
	p.add("HEAD", 1<<30, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for name, value := range map[string]string{"X-Amz-Storage-Class": a.class, "X-Amz-Archive-Status": a.tier, "X-Amz-Restore": a.restore} {
			if value != "" {
				w.Header().Set(name, value)
			}
		}
	})
	p.add("RestoreObject", 1<<30, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		body, _ := io.ReadAll(r.Body)
		a.asked = append(a.asked, string(body))
		switch a.refuse {
		case "":
			a.restore = `ongoing-request="true"`
			w.WriteHeader(http.StatusAccepted)
		case "ObjectAlreadyInActiveTierError":
			refuse(w, http.StatusForbidden, a.refuse)
		default:
			refuse(w, http.StatusConflict, a.refuse)
		}
	})
	p.refuse("GET", 1<<30, http.StatusForbidden, "InvalidObjectState")
}

// A thaw is requested once, runs until S3 reports its end, and is requested again when the copy has
// expired.
func TestThaw(t *testing.T) {
	server := start(t)
	for _, tc := range []struct{ name, class, tier, days string }{
		{"glacier", "GLACIER", "", "<Days>2</Days>"},
		{"deep archive", "DEEP_ARCHIVE", "", "<Days>2</Days>"},
		{"intelligent tiering", "INTELLIGENT_TIERING", "DEEP_ARCHIVE_ACCESS", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProxy(t, server.Endpoint)
			a := &archive{class: tc.class, tier: tc.tier}
			a.serve(p)
			s := behind(t, p, "thaw")
			want := func(keep time.Duration, want bool, asked int) {
				t.Helper()
				if got, err := s.Thaw(t.Context(), "k", keep); err != nil || got != want || len(a.asked) != asked {
					t.Fatalf("readable %t, %v, asked %d times; want %t, %d times", got, err, len(a.asked), want, asked)
				}
			}
			if _, err := s.Open(t.Context(), "k", 0, -1); !errors.Is(err, storage.ErrArchived) {
				t.Errorf("open: %v", err)
			}
			want(0, false, 0)
			want(36*time.Hour, false, 1)
			want(36*time.Hour, false, 1)
			if got := a.asked[0]; !strings.Contains(got, "<Tier>Standard</Tier>") || !strings.Contains(got, tc.days) || tc.days == "" && strings.Contains(got, "Days") {
				t.Errorf("asked %s", got)
			}
			a.restore = `ongoing-request="false", expiry-date="Fri, 21 Dec 2030 00:00:00 GMT"`
			want(time.Hour, true, 1)
			a.restore = ""
			want(time.Hour, false, 2)
		})
	}
	t.Run("somebody else was first", func(t *testing.T) {
		for code, want := range map[string]bool{"RestoreAlreadyInProgress": false, "ObjectAlreadyInActiveTierError": true} {
			p := newProxy(t, server.Endpoint)
			a := &archive{class: "GLACIER", refuse: code}
			a.serve(p)
			if got, err := behind(t, p, "thaw").Thaw(t.Context(), "k", time.Hour); err != nil || got != want || len(a.asked) != 1 {
				t.Errorf("%s: readable %t, %v, asked %d times", code, got, err, len(a.asked))
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		p := newProxy(t, server.Endpoint)
		(&archive{class: "GLACIER", refuse: "OperationAborted"}).serve(p)
		if got, err := behind(t, p, "thaw").Thaw(t.Context(), "k", time.Hour); err == nil || got {
			t.Errorf("readable %t, %v", got, err)
		}
	})
	t.Run("instant retrieval", func(t *testing.T) {
		p := newProxy(t, server.Endpoint)
		a := &archive{class: "GLACIER_IR"}
		a.serve(p)
		if got, err := behind(t, p, "thaw").Thaw(t.Context(), "k", time.Hour); err != nil || !got || len(a.asked) != 0 {
			t.Errorf("readable %t, %v, asked %d times", got, err, len(a.asked))
		}
	})
}
