package s3_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/storage/storagetest"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(victimAddress); address != "" {
		if err := victim(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// start starts a server that this process can use.
func start(t testing.TB) *s3test.Server {
	t.Helper()
	s3test.Setenv(t)
	return s3test.Start(t)
}

// open returns the store at address, that the test closes.
func open(t testing.TB, address string) *s3.Store {
	t.Helper()
	s, err := s3.Open(t.Context(), address)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	server := start(t)
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return open(t, server.Address(strings.ReplaceAll(t.Name(), " ", "_")))
	})
}
