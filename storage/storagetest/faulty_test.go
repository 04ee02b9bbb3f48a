package storagetest_test

import (
	"errors"
	"io"
	"testing"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

func TestFaultyStrikesWhenTold(t *testing.T) {
	ctx := t.Context()
	f := storagetest.NewFaulty(storagetest.NewMemory())
	f.Fail(storagetest.Commit, 2, nil)
	for i, key := range []string{"a", "b", "c"} {
		_, err := storage.Put(ctx, f, key, []byte(key))
		if failed := errors.Is(err, storagetest.ErrInjected); failed != (i == 1) {
			t.Errorf("put %s: err = %v", key, err)
		}
	}
	if _, err := f.Stat(ctx, "b"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("what failed has an effect: %v", err)
	}
	f.FailAfter(storagetest.Commit, 1, io.ErrUnexpectedEOF)
	if _, err := storage.Put(ctx, f, "b", nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("put: err = %v", err)
	}
	if _, err := f.Stat(ctx, "b"); err != nil {
		t.Errorf("a lost answer undid its effect: %v", err)
	}
	if got := f.Count(storagetest.Commit); got != 4 {
		t.Errorf("count = %d, want 4", got)
	}
	f.DieAt(2)
	if _, err := f.Stat(ctx, "a"); err != nil {
		t.Errorf("stat before death: %v", err)
	}
	for range 2 {
		if _, err := f.Stat(ctx, "a"); !errors.Is(err, storagetest.ErrDead) {
			t.Errorf("stat after death: err = %v", err)
		}
	}
	f.Heal()
	if _, err := f.Stat(ctx, "a"); err != nil {
		t.Errorf("stat after healing: %v", err)
	}
}

func TestFaultyQuotaAndReading(t *testing.T) {
	ctx := t.Context()
	f := storagetest.NewFaulty(storagetest.NewMemory())
	f.Quota(5)
	if _, err := storage.Put(ctx, f, "a", []byte("123456")); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("put beyond the quota: err = %v", err)
	}
	f.Quota(6)
	if _, err := storage.Put(ctx, f, "a", []byte("123456")); err != nil {
		t.Errorf("put within the quota: %v", err)
	}
	if err := f.Replace(ctx, "b", []byte("x")); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("replace beyond the quota: err = %v", err)
	}
	f.Flip("a", 2)
	f.Truncate("a", 4)
	if got, err := storage.ReadAll(ctx, f, "a", 10); string(got) != "1224" || err != nil {
		t.Errorf("read %q, %v, want a flipped bit and an early end", got, err)
	}
}
