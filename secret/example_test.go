package secret_test

import (
	"fmt"

	"github.com/holdfast/holdfast/secret"
)

// A secret opens only for what it was sealed for. A new key stands before the old one.
func ExampleKeys_Open() {
	old, err := secret.Parse("b2xkIGtleSBvbGQga2V5IG9sZCBrZXkgb2xkIGtleSE=")
	if err != nil {
		panic(err)
	}
	sealed, err := old.Seal("the password", "collection maps", "https://example.org")
	if err != nil {
		panic(err)
	}
	both, err := secret.Parse("bmV3IGtleSBuZXcga2V5IG5ldyBrZXkgbmV3IGtleSE=, b2xkIGtleSBvbGQga2V5IG9sZCBrZXkgb2xkIGtleSE=")
	if err != nil {
		panic(err)
	}
	secret, err := both.Open(sealed, "collection maps", "https://example.org")
	fmt.Println(secret, err)
	_, err = both.Open(sealed, "collection maps", "https://elsewhere.example")
	fmt.Println(err != nil)
	// Output:
	// the password <nil>
	// true
}
