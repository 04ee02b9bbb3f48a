package storagetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return storagetest.NewMemory() })
}

func TestFaultyMemory(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return storagetest.NewFaulty(storagetest.NewMemory()) })
}
