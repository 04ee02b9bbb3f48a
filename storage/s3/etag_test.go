package s3_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/holdfast/holdfast/storage"
)

// wrongTag has answers name an ETag that the service did not give, in the header or in the
// document.
func (p *proxy) wrongTag(op string, times int) {
	const wrong = `"00000000000000000000000000000000"`
	inside := regexp.MustCompile(`<ETag>[^<]*</ETag>`)
	p.add(op, times, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		real := httptest.NewRecorder()
		forward.ServeHTTP(real, r)
		body := inside.ReplaceAll(real.Body.Bytes(), []byte("<ETag>"+wrong+"</ETag>"))
		for name, values := range real.Header() {
			w.Header()[name] = values
		}
		if w.Header().Get("ETag") != "" {
			w.Header().Set("ETag", wrong)
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(real.Code)
		_, _ = w.Write(body)
	})
}

// TestWrongETag: an answer with a wrong ETag of the object or a part gives an error or changes
// nothing. Whatever Commit returns, the object exists completely or not at all, and a second try
// succeeds.
func TestWrongETag(t *testing.T) {
	p := newProxy(t, start(t).Endpoint)
	s := behind(t, p, "tags")
	for i, op := range []string{"PutObject", "UploadPart", "UploadPartCopy", "Complete", "CopyObject", "HEAD", "GET"} {
		t.Run(op, func(t *testing.T) {
			key := "k" + string(rune('a'+i))
			data := append(random(17*mib), byte(i))
			p.wrongTag(op, 1<<30)
			w, err := s.Create(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Write(data)
			if err == nil {
				_, err = w.Commit(t.Context())
			}
			_ = w.Abort()
			p.heal()
			have, openErr := storage.ReadAll(t.Context(), s, key, 1<<30)
			switch {
			case err == nil && (openErr != nil || !bytes.Equal(have, data)):
				t.Errorf("committed, and what is there has %d bytes (%v)", len(have), openErr)
			case err != nil && openErr == nil && !bytes.Equal(have, data):
				t.Errorf("not committed (%v), and %d other bytes are there", err, len(have))
			case err != nil && openErr != nil && !errors.Is(openErr, storage.ErrNotFound):
				t.Errorf("not committed (%v), and then: %v", err, openErr)
			}
			if _, err := storage.Put(t.Context(), s, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
				t.Errorf("the second try: %v", err)
			}
			wantContent(t, s, key, data)

			p.wrongTag(op, 1<<30)
			got, err := storage.ReadAll(t.Context(), s, key, 1<<30)
			p.heal()
			if err == nil && !bytes.Equal(got, data) {
				t.Errorf("read %d other bytes", len(got))
			}
		})
	}
	wantLeftovers(t, s, "", 0, 0)
}
