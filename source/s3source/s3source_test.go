package s3source_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const content = "0123456789abcdefghij"

// newHTTP is what requests go through; it may reach 127.0.0.1 and nothing else of this network.
func newHTTP(t *testing.T) *source.HTTP {
	t.Helper()
	h := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	t.Cleanup(h.Close)
	return h
}

// at is how the tests' server is reached.
func at(endpoint string) s3source.Bucket {
	return s3source.Bucket{Endpoint: endpoint, PathStyle: true, KeyID: "test", Secret: "test-secret"}
}

// only lets one bucket be read.
func only(name string, b s3source.Bucket) s3source.BucketFunc {
	return func(_ context.Context, bucket string) (s3source.Bucket, error) {
		if bucket != name {
			return s3source.Bucket{}, s3source.ErrNoBucket
		}
		return b, nil
	}
}

func put(t *testing.T, server *s3test.Server, key, text string) string {
	t.Helper()
	client := s3.New(s3.Options{
		BaseEndpoint: &server.Endpoint, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test-secret", ""),
	})
	out, err := client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(s3test.Bucket), Key: &key, Body: strings.NewReader(text), ContentType: aws.String("image/tiff"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.ETag)
}

func readAll(t *testing.T, b *source.Body) string {
	t.Helper()
	defer b.Close()
	data, err := io.ReadAll(b)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func wantFault(t *testing.T, err error, kind source.Fault, content bool, words ...string) *source.Error {
	t.Helper()
	var e *source.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a *source.Error", err, err)
	}
	if e.Kind != kind || e.ContentFault() != content {
		t.Errorf("kind=%s content=%t, want %s %t (%v)", e.Kind, e.ContentFault(), kind, content, err)
	}
	for _, word := range append(words, "s3://") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "test-secret") || strings.Contains(err.Error(), "Signature") && strings.Contains(err.Error(), "=") {
		t.Errorf("error %q tells a secret", err)
	}
	return e
}

// TestSource reads files whole and from the middle, by any key, from a real S3 server.
func TestSource(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	etag := put(t, server, "folder/file.tif", content)
	f := s3source.New(newHTTP(t)).Authorized(only(s3test.Bucket, at(server.Endpoint)))
	const address = "s3://" + s3test.Bucket + "/folder/file.tif"
	info, err := f.Head(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if info.URL != address || info.Size != 20 || info.Validator != etag || info.Filename != "file.tif" || info.ContentType != "image/tiff" || info.Modified.IsZero() {
		t.Errorf("info %+v, want validator %s", info, etag)
	}
	for from, offset := range map[source.Point]int64{
		{}:                              0,
		{Offset: 12, Validator: etag}:   12,
		{Offset: 12, Validator: `"x"`}:  0, // another state of it (R5)
		{Offset: 12}:                    0,
		{Offset: 1000, Validator: etag}: 0,
	} {
		body, err := f.Open(t.Context(), address, from)
		if err != nil {
			t.Errorf("from %+v: %v", from, err)
			continue
		}
		if data := readAll(t, body); data != content[offset:] || body.Offset != offset || body.Info.Size != 20 {
			t.Errorf("from %+v: offset=%d size=%d data=%q, want those from %d on", from, body.Offset, body.Info.Size, data, offset)
		}
	}
	put(t, server, "folder/file.tif", "ABCDEFGHIJKLMNOPQRST")
	body, err := f.Open(t.Context(), address, source.Point{Offset: 12, Validator: etag})
	if err != nil || body.Offset != 0 || readAll(t, body) != "ABCDEFGHIJKLMNOPQRST" {
		t.Errorf("replaced since: offset=%d, %v; want it from its beginning", body.Offset, err)
	}
	for _, key := range []string{"a b+c%2e&=;:@$,!'()*~.txt", "ü/ß#?.tif"} {
		put(t, server, key, key)
		body, err := f.Open(t.Context(), source.S3Address{Bucket: s3test.Bucket, Key: key}.URL().String(), source.Point{})
		if err != nil {
			t.Errorf("%q: %v", key, err)
		} else if data := readAll(t, body); data != key {
			t.Errorf("%q: data %q", key, data)
		}
	}
}

// TestSource_Faults checks that a missing file is the deposit's fault and a refused access the
// system's.
func TestSource_Faults(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	put(t, server, "file", content)
	src := s3source.New(newHTTP(t))
	open := func(b s3source.Bucket, address string) error {
		body, err := src.Authorized(func(_ context.Context, bucket string) (s3source.Bucket, error) { return b, nil }).Open(t.Context(), address, source.Point{})
		if err == nil {
			_ = body.Close()
		}
		return err
	}
	good := at(server.Endpoint)
	wantFault(t, open(good, "s3://"+s3test.Bucket+"/none"), source.FaultMissing, true, "NoSuchKey", "s3://holdfast/none")
	wantFault(t, open(good, "s3://no-such-bucket/file"), source.FaultMissing, true, "NoSuchBucket")
	wrong, unknown := good, good
	wrong.Secret, unknown.KeyID = "other", "other"
	wantFault(t, open(wrong, "s3://"+s3test.Bucket+"/file"), source.FaultDenied, false, "SignatureDoesNotMatch", "collection credential set")
	wantFault(t, open(unknown, "s3://"+s3test.Bucket+"/file"), source.FaultStatus, false, "XAdminUserNotFound") // AWS answers 403 InvalidAccessKeyId
	wantFault(t, open(good, "s3://"+s3test.Bucket+"/"), source.FaultURL, true)
	wantFault(t, open(good, "s3://u:test-secret@"+s3test.Bucket+"/file"), source.FaultURL, true)
	if _, err := src.Authorized(only(s3test.Bucket, good)).Head(t.Context(), "s3://"+s3test.Bucket+"/none"); err == nil {
		t.Error("what is missing has a size")
	} else {
		wantFault(t, err, source.FaultMissing, true)
	}

	// A bucket that the collection was given nothing for is not asked at all; nor is one elsewhere
	// in the network.
	_, err := src.Authorized(only(s3test.Bucket, good)).Head(t.Context(), "s3://another-bucket/file")
	wantFault(t, err, source.FaultDenied, false, "no credential", "collection credential set")
	inside := good
	inside.Endpoint = strings.Replace(server.Endpoint, "127.0.0.1", "127.0.0.2", 1)
	err = open(inside, "s3://"+s3test.Bucket+"/file")
	wantFault(t, err, source.FaultForbidden, true, "leads to an address that is refused")
	if strings.Contains(err.Error(), "127.0.0.2") {
		t.Errorf("the depositor is told an address inside: %v", err)
	}
	broken := errors.New("broken")
	_, err = src.Authorized(func(context.Context, string) (s3source.Bucket, error) { return s3source.Bucket{}, broken }).Head(t.Context(), "s3://bucket/a")
	wantFault(t, err, source.FaultCredential, false, "broken")
	wantFault(t, open(s3source.Bucket{KeyID: "a", Secret: "test-secret"}, "s3://bucket/a"), source.FaultCredential, false, "region")
}

// TestSource_Answers checks that 503 SlowDown is reported as busy, that 403 is the system's fault,
// and that no redirect is followed, so that no signature is sent to another server.
func TestSource_Answers(t *testing.T) {
	t.Parallel()
	var foreign atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(status int, code string) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>`+code+`</Code><Message>m</Message></Error>`)
		}
		switch r.URL.Path {
		case "/bucket/slow":
			w.Header().Set("Retry-After", "7")
			answer(http.StatusServiceUnavailable, "SlowDown")
		case "/bucket/denied":
			answer(http.StatusForbidden, "AccessDenied")
		case "/bucket/moved":
			w.Header().Set("Location", other.URL+"/bucket/moved")
			answer(http.StatusTemporaryRedirect, "TemporaryRedirect")
		default:
			answer(http.StatusInternalServerError, "InternalError")
		}
	}))
	defer server.Close()
	f := s3source.New(newHTTP(t)).Authorized(only("bucket", at(server.URL)))
	for key, want := range map[string]struct {
		kind source.Fault
		code string
		wait time.Duration
	}{
		"denied": {source.FaultDenied, "AccessDenied", 0},
		"moved":  {source.FaultRedirect, "region or endpoint", 0},
		"other":  {source.FaultStatus, "InternalError", 0},
	} {
		_, err := f.Open(t.Context(), "s3://bucket/"+key, source.Point{})
		wantFault(t, err, want.kind, false, want.code)
	}
	_, err := f.Open(t.Context(), "s3://bucket/slow", source.Point{}) // the last, since nothing is asked for a while then
	if e := wantFault(t, err, source.FaultBusy, false, "SlowDown"); e.RetryAfter != 7*time.Second {
		t.Errorf("asks to wait %s, want 7 s", e.RetryAfter)
	}
	if foreign.Load() != 0 {
		t.Error("a request was redirected to another server")
	}
}

// TestSource_Address checks the address of a request and that it names the version.
func TestSource_Address(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Clone(context.WithoutCancel(r.Context()))
		_, _ = io.WriteString(w, content)
	}))
	defer server.Close()
	f := s3source.New(newHTTP(t)).Authorized(only("bucket", at(server.URL+"/base/")))
	body, err := f.Open(t.Context(), "s3://bucket/a%20b/%C3%BC+c?versionId=v1", source.Point{Offset: 5, Validator: `"e"`})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	r := <-seen
	if r.RequestURI != "/base/bucket/a%20b/%C3%BC%2Bc?versionId=v1" || r.Header.Get("If-Match") != `"e"` || r.Header.Get("Range") != "bytes=5-" ||
		r.Header.Get("Accept-Encoding") != "identity" || !strings.Contains(r.Header.Get("Authorization"), "Credential=test/") ||
		!strings.Contains(r.Header.Get("Authorization"), "/us-east-1/s3/aws4_request") || strings.Contains(r.Header.Get("Authorization"), "accept-encoding") {
		t.Errorf("asked %s with %v", r.RequestURI, r.Header)
	}
}

// TestSource_DefaultChain checks that the service's own credentials are used where that is allowed,
// and never for the service's own buckets.
func TestSource_DefaultChain(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	put(t, server, "file", content)
	own := s3source.Bucket{Endpoint: server.Endpoint, PathStyle: true, DefaultChain: true}
	h := newHTTP(t)
	body, err := s3source.New(h, "storage").Authorized(only(s3test.Bucket, own)).Open(t.Context(), "s3://"+s3test.Bucket+"/file", source.Point{})
	if err != nil || readAll(t, body) != content {
		t.Fatalf("by the default chain: %v", err)
	}
	_, err = s3source.New(h, "staging", s3test.Bucket).Authorized(only(s3test.Bucket, own)).Head(t.Context(), "s3://"+s3test.Bucket+"/file")
	wantFault(t, err, source.FaultDenied, false, "its own files")
	_, err = s3source.New(h).Authorized(only("other", own)).Head(t.Context(), "s3://"+s3test.Bucket+"/file")
	wantFault(t, err, source.FaultDenied, false, "no credential")
}
