package dir_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// crowdedBatch is what this binary does as a traced program: it publishes a batch while a syncfs
// would be slow.
const crowdedBatch = "crowded batch"

func publishTwo(ctx context.Context, s *dir.Store) error {
	b := s.Batch()
	defer b.Close()
	for _, key := range []string{"a", "b"} {
		if err := storage.PutIn(ctx, b, key, []byte("bytes")); err != nil {
			return err
		}
	}
	taken, err := b.Publish(ctx)
	if err == nil && len(taken) > 0 {
		err = fmt.Errorf("taken %q", taken)
	}
	return err
}

// TestFailedWriteIsToldByFsync: the kernel tells an open file of a failed write once. So a batch that
// syncs each file asks none for its error before its fsync, which would then report success.
func TestFailedWriteIsToldByFsync(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	path := t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-o", trace, "-e", "trace=sync_file_range,fsync,syncfs", os.Args[0])
	cmd.Env = append(os.Environ(), "DIR_TEST_PATH="+path, "DIR_TEST_ACT="+crowdedBatch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "fsync("); got < 3 || strings.Contains(string(text), "syncfs(") || strings.Contains(string(text), "WAIT_BEFORE") {
		t.Errorf("%d fsyncs, want one of each file and folder, and nothing else that asks for errors:\n%s", got, text)
	}
}
