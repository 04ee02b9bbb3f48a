package sqlstoretest

import (
	"testing"

	"github.com/holdfast/holdfast/registry/receipt"
)

// ReceiptKey returns a key that signs the receipts of tests, always the same one.
func ReceiptKey(t testing.TB) *receipt.Key {
	t.Helper()
	key, err := receipt.ParseKey("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	return key
}
