package staging_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// No byte is written beyond the reservation before it is extended (R24).
func TestR24_RoomBeforeWriting(t *testing.T) {
	inner := storagetest.NewMemory()
	var asked []int64
	room := staging.NewRoom(100, 40, func(_ context.Context, bytes, staged int64) error {
		if len(asked) == 1 {
			return &registry.NoSpaceError{Need: bytes}
		}
		asked = append(asked, bytes, staged)
		return nil
	})
	s := room.Within(inner)
	w, err := s.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 60)); err != nil || len(asked) != 0 {
		t.Fatalf("within what was granted: %v, asked %v", err, asked)
	}
	if _, err := w.Write(make([]byte, 1)); err != nil || len(asked) != 2 || asked[0] < 101 || asked[1] != 100 {
		t.Fatalf("past it: %v, asked %v", err, asked)
	}
	if room.Granted() != asked[0] {
		t.Errorf("granted=%d, want %d", room.Granted(), asked[0])
	}
}

func TestR24_RefusedRoomEndsTheWrite(t *testing.T) {
	refused := &registry.NoSpaceError{Volume: "v"}
	room := staging.NewRoom(10, 0, func(context.Context, int64, int64) error { return refused })
	f := fetchOf(&origin{data: random(1000)}, room.Within(storagetest.NewMemory()), "1", new([]byte))
	_, err := f.Run(t.Context())
	var full *registry.NoSpaceError
	if !errors.As(err, &full) || full != refused {
		t.Errorf("error %v", err)
	}
}

// Deleted bytes release their room.
func TestRoom_GivesBack(t *testing.T) {
	grown := 0
	room := staging.NewRoom(100, 0, func(context.Context, int64, int64) error { grown++; return nil })
	inner := storagetest.NewMemory()
	s := room.Within(inner)
	for range 5 {
		w, err := s.Create(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 80)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Abort(), w.Abort()); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		if _, err := storage.Put(t.Context(), s, "b", make([]byte, 80)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Delete(t.Context(), "b"), s.Delete(t.Context(), "b")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Resume(t.Context(), "c", storage.Checkpoint{Token: "none", Size: 80}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("resume: %v", err)
	}
	if err := room.Take(t.Context(), 100); err != nil || grown != 0 {
		t.Errorf("asked for room %d times (%v)", grown, err)
	}
}
