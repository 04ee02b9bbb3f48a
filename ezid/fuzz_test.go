package ezid

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/metadata"
)

// FuzzAnswer checks that every answer is either refused or a record of the requested ARK.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"", "success: ark:/99999/fk4test\n_status: public\n", "success: ark:/99999/fk4other\n", "error: bad request - no such identifier\n",
		"error: unauthorized\n", "<html>", "success: ark:/99999/fk4test\n\nsuccess: x\n", "success:\n", "a%0Ab: %41\n",
	} {
		for _, status := range []int{200, 201, 400, 403, 429, 500, 502} {
			f.Add(status, "3", []byte(text))
		}
	}
	c, err := New(Options{URL: "https://user:password@ezid.test"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	o := operation{op: "read", method: http.MethodGet, ark: "ark:/99999/fk4test"}
	f.Fuzz(func(t *testing.T, status int, wait string, text []byte) {
		if status < 100 || status > 999 {
			return
		}
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {wait}}}
		record, err := c.judge(o, resp, text)
		if err == nil {
			records, wrong := metadata.ReadANVL(bytes.NewReader(text))
			if status/100 != 2 || wrong != nil || len(records) != 1 || !same(records[0][0].Value, o.ark) || len(record) != len(records[0])-1 {
				t.Errorf("%d %q is taken for %v", status, text, record)
			}
			return
		}
		e, ok := err.(*Error) //nolint:errorlint // it is that, and wraps nothing of the kind
		if !ok || e.Kind == "" || e.Error() == "" || e.RetryAfter < 0 || record != nil {
			t.Errorf("%d %q: %#v, want an error of a kind and no record", status, text, err)
		}
	})
}
