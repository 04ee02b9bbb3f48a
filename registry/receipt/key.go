package receipt

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Key signs receipts and checkpoints. It is safe for concurrent use.
type Key struct{ private ed25519.PrivateKey }

// ParseKey reads a key: the base64 of 32 random bytes, as `openssl rand -base64 32` prints it. Its
// error repeats nothing of the text.
func ParseKey(text string) (*Key, error) {
	seed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("the key is not the base64 of 32 random bytes (openssl rand -base64 32)")
	}
	return &Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// NewKey returns the text of a fresh key, as ParseKey takes it.
func NewKey() string {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails: crypto/rand ends the program instead
	return base64.StdEncoding.EncodeToString(seed)
}

// Public returns the public key, which verifies the signatures.
func (k *Key) Public() PublicKey {
	return PublicKey(k.private.Public().(ed25519.PublicKey)) // documented by crypto/ed25519
}

// Sign fills in the header's key and returns its line and the signature of that line. The same
// header and key give the same bytes.
func (k *Key) Sign(h Header) (head string, signature []byte) {
	return k.sign(&h.Key, &h.PublicKey, func(w *line) { w.header(h) })
}

// Unsigned returns the header's line without a key, for a service that has none.
func Unsigned(h Header) (head string) {
	head, _ = (*Key)(nil).Sign(h)
	return head
}

// sign names the key in what write writes, and returns the line and its signature. No key names none and
// does not sign.
func (k *Key) sign(id, public *string, write func(*line)) (text string, signature []byte) {
	var w line
	if *id, *public = "", ""; k == nil {
		write(&w)
		return string(w.b), nil
	}
	*id, *public = k.Public().ID(), k.Public().String()
	write(&w)
	return string(w.b), ed25519.Sign(k.private, w.b)
}

// Head returns the beginning of a receipt: the signed line and the signature's line. One that is
// not signed has no signature, and so no such line.
func Head(head string, signature []byte) []byte {
	if len(signature) == 0 {
		return []byte(head)
	}
	return []byte(head + `{"signature":"` + base64.StdEncoding.EncodeToString(signature) + "\"}\n")
}

// PublicKey verifies signatures. It has 32 bytes.
type PublicKey ed25519.PublicKey

// String returns the key in hex.
func (p PublicKey) String() string { return hex.EncodeToString(p) }

func (p PublicKey) der() []byte {
	der, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(p))
	if err != nil {
		panic(err) // cannot happen: x509 knows Ed25519
	}
	return der
}

// ID identifies the key: the SHA-256, in hex, of its DER form. `openssl pkey -pubin -outform DER |
// sha256sum` prints the same.
func (p PublicKey) ID() string {
	sum := sha256.Sum256(p.der())
	return hex.EncodeToString(sum[:])
}

// PEM returns the key in the form that openssl reads.
func (p PublicKey) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: p.der()}))
}

// ParsePublicKey reads a key in the form of [PublicKey.String].
func ParsePublicKey(text string) (PublicKey, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 64 hex digits")
	}
	return PublicKey(raw), nil
}

// RecordedKeys returns the keys that the Registry has of those that signed. Its error names the one that it
// cannot read.
func RecordedKeys(rows []registry.ReceiptKey) ([]PublicKey, error) {
	keys := make([]PublicKey, len(rows))
	for i, row := range rows {
		var err error
		if keys[i], err = ParsePublicKey(row.PublicKey); err != nil {
			return nil, fmt.Errorf("read receipt key %s: %w", row.ID, err)
		}
	}
	return keys, nil
}

// ParsePublicKeys reads one or more keys in the form of [PublicKey.PEM] and ignores the text around
// them. Without any it returns an error.
func ParsePublicKeys(text []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a block of type %q: want PUBLIC KEY", block.Type)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("the public key is not an Ed25519 key")
		}
		keys = append(keys, PublicKey(public))
	}
	if len(keys) == 0 {
		return nil, errors.New("it contains no public key (-----BEGIN PUBLIC KEY-----)")
	}
	return keys, nil
}
