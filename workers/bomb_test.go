package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

func xzOf(t testing.TB, data string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 20}.NewWriter(&out)
	must(t, err)
	_, err = w.Write([]byte(data))
	must(t, err)
	must(t, w.Close())
	return out.String()
}

func zstdOf(t testing.TB, data string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	must(t, err)
	_, err = w.Write([]byte(data))
	must(t, err)
	must(t, w.Close())
	return out.String()
}

// Containers that need much memory to decompress do not fill it together, whatever the number of
// slots. One without memory waits without its slot, uncounted, and is unpacked later. Others do not
// wait.
func TestProcess_WindowsAreBounded(t *testing.T) {
	t.Parallel()
	const window = 1 << 20
	g := gate.New(gate.Options{UnpackMemory: 2 * window})
	var broken atomic.Bool
	r := newRig(t, func(d *workers.Deps) {
		d.Gate, d.Unpack, d.Staging = g, unpack.Limits{Window: window}, panicking{d.Staging, &broken}
	})
	files := map[string]string{"a.txt": "alpha"}
	tarred := tarOf(t, files)
	job := func(name, data string) string {
		id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put(name, data), Filename: name})
		r.advance(id, registry.Process)
		return id
	}
	goesOn := []string{job("c.tar.gz", gzipOf(t, tarred)), job("c.zip", zipOf(t, files))}
	waits := []string{job("c.tar.xz", xzOf(t, tarred)), job("c.tar.zst", zstdOf(t, tarred))}
	var leaves []func()
	for range 2 { // two others are being decompressed
		leave, err := g.Unpack(t.Context(), gate.Work{Collection: "other", Memory: window})
		must(t, err)
		leaves = append(leaves, leave)
	}
	for _, id := range goesOn {
		r.complete(id)
	}
	if _, err := r.run(waits[0]); err == nil {
		t.Fatal("it was taken apart")
	}
	it := r.item(waits[0])
	why, err := r.registry.Why(t.Context(), it.ID)
	must(t, err)
	if it.Status != registry.Pending || it.Tries != 0 || it.Stage != registry.Process || why.Reason != registry.ReasonNoMemory || !strings.Contains(why.Act, "HOLDFAST_UNPACK_MEMORY") {
		t.Errorf("%s at %s after %d tries, because of %+v; want that it waits for memory", it.Status, it.Stage, it.Tries, why)
	}
	leaves[0]()
	r.wait(2 * time.Minute)
	for _, id := range waits { // one after the other in what one has left
		if diff := cmp.Diff(files, r.producer(r.complete(id), 1)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	broken.Store(true)
	panics := job("panics.tar.xz", xzOf(t, tarred)) // whose unpacking fails by a fault of ours
	if _, err := r.run(panics); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Fatalf("unpacked by %v, want a panic", err)
	}
	broken.Store(false)
	leave, err := g.Unpack(t.Context(), gate.Work{Collection: "other", Memory: window}) // it has given back what it had
	must(t, err)
	leave()
	leaves[1]()
}

// panicking is a store that has a fault while broken is true.
type panicking struct {
	storage.Store
	broken *atomic.Bool
}

// Create implements storage.Store.
func (s panicking) Create(ctx context.Context, key string) (storage.Writer, error) {
	if s.broken.Load() && strings.Contains(key, "unpacked/") && !strings.HasSuffix(key, ".jsonl") {
		panic("a fault of ours")
	}
	return s.Store.Create(ctx, key)
}

// A decompression bomb is a content fault and reported as such. None of its contents stay on disk;
// the deposited file stays until the item is requeued or deleted.
func TestProcess_Bombs(t *testing.T) {
	t.Parallel()
	const files, each = 8, 512 << 10
	zeros := map[string]string{}
	for i := range files {
		zeros[fmt.Sprintf("%d.bin", i)] = strings.Repeat("\x00", each)
	}
	tarred := tarOf(t, zeros)
	for name, data := range map[string]string{
		"zip": zipOf(t, zeros), "tar": tarred, "tar.gz": gzipOf(t, tarred), "tar.xz": xzOf(t, tarred), "tar.zst": zstdOf(t, tarred),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(d *workers.Deps) { d.Unpack = unpack.Limits{Bytes: files * each / 2} })
			id := r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("bomb", data), Filename: "bomb"})
			it := r.fails(id)
			isContent(t, it, "bomb", "unpacks to more than 2097152 bytes", "limit")
			if it.Stage != registry.Process || it.Tries != 0 {
				t.Errorf("stage=%s tries=%d, want process 0", it.Stage, it.Tries)
			}
			var staged int64
			for info, err := range r.staging.List(t.Context(), "items/"+id) {
				must(t, err)
				staged += info.Size
				if strings.Contains(info.Key, "unpacked") {
					t.Errorf("left of the bomb: %s, %d bytes", info.Key, info.Size)
				}
			}
			if staged > int64(len(data))+4096 {
				t.Errorf("%d bytes are staged of a deposit of %d", staged, len(data))
			}
			if stored := keys(t, r.storage, "ark"); len(stored) > 0 {
				t.Errorf("stored of the bomb: %v", stored)
			}
			if staged == 0 {
				t.Error("the container itself is not kept for a requeue")
			}
			r.command(id, registry.ActDelete, "")
			r.wait(3 * time.Minute)
			if v, err := r.run(r.only(registry.Tidy).ID); err != nil || v.Status != registry.Completed {
				t.Fatalf("tidied: %+v, %v", v, err)
			}
			r.nothingStaged(id)
		})
	}
}

// The history has all faults of a container, and nothing of it stays.
func TestProcess_AllFaults(t *testing.T) {
	t.Parallel()
	bad := map[string]string{"good": "1", "../out": "2", "/abs": "3", "x/../../y": "4"}
	for name, data := range map[string]string{"zip": zipOf(t, bad), "tar.gz": gzipOf(t, tarOf(t, bad))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			id := r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("bad", data), Filename: "bad"})
			isContent(t, r.fails(id), "3 faults", "../out")
			if told := r.refusal(id, "container-refused"); told.Errors != 3 || len(told.Faults) != 3 {
				t.Errorf("told %+v", told)
			}
			for info, err := range r.staging.List(t.Context(), "items/"+id) {
				must(t, err)
				if strings.Contains(info.Key, "unpacked") {
					t.Errorf("left of it: %s", info.Key)
				}
			}
		})
	}
}

// refusal is what an event of an item's history tells of its refusal.
func (r *rig) refusal(id, kind string) (told intake.Report) {
	r.t.Helper()
	history, err := r.registry.Events(r.t.Context(), id, 0, 500)
	must(r.t, err)
	for _, e := range history {
		if e.Type == kind {
			must(r.t, json.Unmarshal(e.Data, &told))
			return told
		}
	}
	r.t.Fatalf("no event %s among %v", kind, history)
	return told
}

// With default limits, a bomb is detected by its claimed sizes before anything is unpacked.
func TestProcess_BombByDefault(t *testing.T) {
	t.Parallel()
	head := []byte(tarOf(t, map[string]string{"bomb": ""}))
	copy(head[124:136], "77777777777\x00") // 8 GiB, of which more than the first would never have to be sent
	sum := 0
	copy(head[148:156], "        ")
	for _, b := range head[:512] {
		sum += int(b)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	data := string(head) + strings.Repeat("\x00", 1<<20)
	for name, bomb := range map[string]string{"tar.gz": gzipOf(t, data), "tar.xz": xzOf(t, data), "tar.zst": zstdOf(t, data)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			it := r.fails(r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("bomb", bomb), Filename: "bomb"}))
			isContent(t, it, "decompression bomb", "200 times its own size")
			if left := keys(t, r.staging, "items/"+it.ID); strings.Contains(strings.Join(left, " "), "unpacked") {
				t.Errorf("unpacked files are left: %v", left)
			}
		})
	}
}
