// Package s3test runs a real S3 server, versitygw, for tests. It is a child process on a free port
// of 127.0.0.1 with a folder of its own, and ends with the test.
package s3test

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast/holdfast/internal/proctest"
)

// Bucket is the one bucket that the server has.
const Bucket = "holdfast"

// Server is a running server.
type Server struct {
	Endpoint string // http://127.0.0.1:PORT
	Folder   string // where the bucket's objects are files
}

// Env is what a process that uses a server has in its environment.
func Env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test-secret", "AWS_REGION=us-east-1", "AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Setenv gives the test's own process the environment to use a server. The test cannot be a
// parallel one then.
func Setenv(t testing.TB) {
	t.Helper()
	for _, entry := range Env() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
}

// Start starts a server with an empty bucket. The first use on a machine builds the server. Where
// that cannot be done the test is skipped, or fails when REQUIRE_SERVICES is 1, as in CI.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Folder: filepath.Join(t.TempDir(), Bucket)}
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		t.Fatalf("make the bucket: %v", err)
	}
	cmd := exec.Command(proctest.Built(t, "s3gateway"), filepath.Dir(s.Folder))
	stdin, err := cmd.StdinPipe() // its end ends the server, should this process be killed
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the S3 server: %v", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed on purpose
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.Endpoint = "http://" + addr
			return s
		}
	}
	t.Fatalf("the S3 server ended at once: %v\n%s", cmd.Wait(), log.String())
	return nil
}

// Address returns the address of a store below prefix, for s3.Open and HOLDFAST_STORAGE_URL.
func (s *Server) Address(prefix string) string { return Address(s.Endpoint, prefix) }

// Address returns the address of a store below prefix of the bucket, at an endpoint in front of a
// server.
func Address(endpoint, prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?path_style=true&endpoint=" + endpoint
}

// client returns a client of the server.
func (s *Server) client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.Endpoint, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test-secret", ""),
	})
}

// Fill puts the files of a folder into the bucket, below prefix, as another program would.
func (s *Server) Fill(t testing.TB, folder, prefix string) {
	t.Helper()
	client := s.client()
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: aws.String(prefix + "/" + name), Body: bytes.NewReader(text)})
		return err
	})
	if err != nil {
		t.Fatalf("fill the bucket: %v", err)
	}
}

// Uploads returns the keys of the unfinished multipart uploads. Remains of a part that was being
// sent when its upload was aborted are the server's own business.
func (s *Server) Uploads(t testing.TB) (keys []string) {
	t.Helper()
	bucket := Bucket
	pages := s3.NewListMultipartUploadsPaginator(s.client(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Fatalf("list uploads: %v", err)
		}
		for _, u := range page.Uploads {
			keys = append(keys, aws.ToString(u.Key))
		}
	}
	return keys
}
