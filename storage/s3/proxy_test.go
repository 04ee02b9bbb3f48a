package s3_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// proxy stands between a store and the server, and does to requests what a test asks for.
type proxy struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	rules []*rule
	seen  map[string]int // operations
}

// rule is what befalls the next requests of an operation.
type rule struct {
	op    string
	times int
	do    func(w http.ResponseWriter, r *http.Request, forward http.Handler)
}

func newProxy(t testing.TB, endpoint string) *proxy {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, seen: map[string]int{}}
	transport := &http.Transport{}
	// The Host stays what the request was signed for.
	forward := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
		},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rule := p.match(operation(r)); rule != nil {
			rule.do(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { p.Close(); transport.CloseIdleConnections() })
	return p
}

// operation is S3's name for a request.
func operation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "Complete"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateUpload"
	case r.Method == http.MethodPost && q.Has("restore"):
		return "RestoreObject"
	case r.Method == http.MethodPost && q.Has("delete"):
		return "DeleteObjects"
	case r.Method == http.MethodPut && q.Has("partNumber") && r.Header.Get("X-Amz-Copy-Source") != "":
		return "UploadPartCopy"
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "UploadPart"
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case q.Has("list-type"), q.Has("uploads"):
		return "List"
	}
	return r.Method
}

func (p *proxy) match(op string) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[op]++
	for _, r := range p.rules {
		if r.op == op && r.times > 0 {
			r.times--
			return r
		}
	}
	return nil
}

func (p *proxy) add(op string, times int, do func(http.ResponseWriter, *http.Request, http.Handler)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{op: op, times: times, do: do})
}

// heal takes back all rules.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// count is how often an operation was asked for.
func (p *proxy) count(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[op]
}

// lose lets requests take effect and breaks the connection instead of answering.
func (p *proxy) lose(op string, times int) {
	p.add(op, times, func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// lie lets requests take effect and answers with an error.
func (p *proxy) lie(op string, times, status int, code string) {
	p.add(op, times, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, status, code)
	})
}

// refuse answers requests with an error; they have no effect.
func (p *proxy) refuse(op string, times, status int, code string) {
	p.add(op, times, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		refuse(w, status, code)
	})
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>made up by the test</Message></Error>`, code)
}

// cut breaks the bodies of answers after n bytes.
func (p *proxy) cut(op string, times, n int) {
	p.add(op, times, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		got := httptest.NewRecorder()
		forward.ServeHTTP(got, r)
		for name, values := range got.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes()[:min(n, got.Body.Len())])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// ignoreConditions has the server honour no If-None-Match of an operation. The header is signed, so
// the request is signed anew without it.
func (p *proxy) ignoreConditions(op string) {
	keys := aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY")}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	p.add(op, 1<<30, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		for _, name := range []string{"If-None-Match", "Authorization"} {
			r.Header.Del(name)
		}
		err := signer.SignHTTP(r.Context(), keys, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", os.Getenv("AWS_REGION"), time.Now())
		if err != nil {
			p.t.Errorf("sign: %v", err)
		}
		forward.ServeHTTP(w, r)
	})
}

// onceBefore calls f before the next request of an operation is passed on.
func (p *proxy) onceBefore(op string, f func()) {
	p.add(op, 1, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		f()
		forward.ServeHTTP(w, r)
	})
}
