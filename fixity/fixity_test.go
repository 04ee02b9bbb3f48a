package fixity_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/fixity"
)

// TestDigester_KnownValues uses the values for "abc" of the algorithms' specifications (RFC 1319,
// RFC 1321, RFC 3174, FIPS 180-4), of RFC 1950 and of the CRC catalogue.
func TestDigester_KnownValues(t *testing.T) {
	want := map[string]string{
		"adler32": "024d0127",
		"crc32":   "352441c2",
		"md2":     "da853b0d3f88d99b30283a69e6ded6bb",
		"md5":     "900150983cd24fb0d6963f7d28e17f72",
		"sha1":    "a9993e364706816aba3e25717850c26c9cd0d89d",
		"sha256":  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"sha384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed" +
			"8086072ba1e7cc2358baeca134c825a7",
		"sha512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a" +
			"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		"sha512/256": "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
	}
	d, err := fixity.NewDigester(fixity.Algorithms()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"a", "", "bc"} {
		if n, err := d.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("write %q: %d, %v", part, n, err)
		}
	}
	if diff := cmp.Diff(want, d.Sums()); diff != "" {
		t.Errorf("digests of abc (-want +got):\n%s", diff)
	}
	if d.Size() != 3 {
		t.Errorf("size=%d", d.Size())
	}
}

// TestNew_MD2 has the other values of RFC 1319, A.5, over one block and several.
func TestNew_MD2(t *testing.T) {
	for text, want := range map[string]string{
		"":               "8350e5a3e24c153df2275c9f80692773",
		"a":              "32ec01ec4a6dac72c0ab96fb34c0b5d1",
		"message digest": "ab4f496bfb2a530b219ff33031fe06b0",
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890": "d5976f79d83d3a0dc9806c3c66f3efd8",
	} {
		d, err := fixity.NewDigester("md2")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = d.Write([]byte(text))
		if got := d.Sums()["md2"]; got != want {
			t.Errorf("md2 of %q: %s, want %s", text, got, want)
		}
	}
}

func TestNew_Unknown(t *testing.T) {
	for _, name := range []string{"", "md4", "SHA256", "sha-256"} {
		if _, err := fixity.New(name); !errors.Is(err, fixity.ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := fixity.NewDigester("sha256", name); !errors.Is(err, fixity.ErrUnknown) {
			t.Errorf("digester of %q: %v", name, err)
		}
	}
	if !slices.IsSorted(fixity.Algorithms()) {
		t.Error("names are not in order")
	}
}

// TestR27_SaveAndRestore: the digests are those of the whole stream, wherever it is cut and
// whichever process continues (R27).
func TestR27_SaveAndRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algorithms := rapid.SliceOfN(rapid.SampledFrom(fixity.Algorithms()), 1, 4).Draw(t, "algorithms")
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		cut := rapid.IntRange(0, len(data)).Draw(t, "cut")
		whole, err := fixity.NewDigester(algorithms...)
		must(t, err)
		whole.Write(data)
		first, err := fixity.NewDigester(algorithms...)
		must(t, err)
		first.Write(data[:cut])
		state, err := first.State()
		must(t, err)
		raw, err := json.Marshal(state)
		must(t, err)
		first.Write([]byte("what the predecessor still does changes nothing"))
		var saved fixity.State
		must(t, json.Unmarshal(raw, &saved))
		slices.Reverse(algorithms) // their order says nothing
		second, err := fixity.NewDigester(algorithms...)
		must(t, err)
		if !second.Restore(saved) {
			t.Fatal("state was not understood")
		}
		second.Write(data[cut:])
		if diff := cmp.Diff(whole.Sums(), second.Sums()); diff != "" || second.Size() != int64(len(data)) {
			t.Errorf("size=%d, digests (-whole +resumed):\n%s", second.Size(), diff)
		}
	})
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// TestR27_ForeignState: an unknown state changes nothing and is no error.
func TestR27_ForeignState(t *testing.T) {
	fresh := func() *fixity.Digester {
		d, err := fixity.NewDigester("md5", "sha256")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	good, err := fresh().State()
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func(s *fixity.State)) fixity.State {
		s := fixity.State{Version: good.Version, Size: good.Size, Hashes: map[string][]byte{}}
		for k, v := range good.Hashes {
			s.Hashes[k] = slices.Clone(v)
		}
		do(&s)
		return s
	}
	for name, s := range map[string]fixity.State{
		"none":             {},
		"version":          change(func(s *fixity.State) { s.Version = "go2" }),
		"negative":         change(func(s *fixity.State) { s.Size = -1 }),
		"one less":         change(func(s *fixity.State) { delete(s.Hashes, "md5") }),
		"other algorithm":  change(func(s *fixity.State) { s.Hashes["sha1"] = s.Hashes["md5"]; delete(s.Hashes, "md5") }),
		"cut":              change(func(s *fixity.State) { s.Hashes["md5"] = s.Hashes["md5"][:5] }),
		"of another":       change(func(s *fixity.State) { s.Hashes["md5"] = s.Hashes["sha256"] }),
		"overwritten head": change(func(s *fixity.State) { s.Hashes["md5"][0]++ }),
	} {
		d := fresh()
		d.Write([]byte("before"))
		before := d.Sums()
		if d.Restore(s) {
			t.Errorf("%s: was taken", name)
		}
		if diff := cmp.Diff(before, d.Sums()); diff != "" || d.Size() != 6 {
			t.Errorf("%s: changed the digester", name)
		}
	}
}

// TestDigester_Concurrent: digesters share nothing, and large writes give the same digests as small
// ones.
func TestDigester_Concurrent(t *testing.T) {
	data := make([]byte, 1<<20+17)
	r := rand.NewChaCha8([32]byte{7})
	_, _ = r.Read(data)
	sums := make([]map[string]string, 8)
	var all sync.WaitGroup
	for i := range sums {
		all.Go(func() {
			d, err := fixity.NewDigester("md5", "sha256", "sha512", "md5")
			if err != nil {
				t.Error(err)
				return
			}
			step := len(data) >> i
			for rest := data; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				d.Write(rest[:min(step, len(rest))])
			}
			sums[i] = d.Sums()
		})
	}
	all.Wait()
	for i, s := range sums {
		if diff := cmp.Diff(sums[0], s); diff != "" {
			t.Errorf("digester %d differs:\n%s", i, diff)
		}
	}
}

func FuzzRestore(f *testing.F) {
	f.Add("go1", int64(3), []byte("x"))
	f.Fuzz(func(t *testing.T, version string, size int64, state []byte) {
		d, err := fixity.NewDigester("sha512")
		if err != nil {
			t.Fatal(err)
		}
		if d.Restore(fixity.State{Version: version, Size: size, Hashes: map[string][]byte{"sha512": state}}) {
			d.Write([]byte("more"))
			_ = d.Sums()
		}
	})
}

func BenchmarkDigester(b *testing.B) {
	chunk := make([]byte, 256<<10)
	for _, algorithms := range [][]string{{"sha256"}, {"sha512"}, {"sha256", "sha512"}} {
		b.Run(algorithms[0]+map[bool]string{true: "+" + algorithms[len(algorithms)-1]}[len(algorithms) > 1], func(b *testing.B) {
			d, err := fixity.NewDigester(algorithms...)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				d.Write(chunk)
			}
		})
	}
}
