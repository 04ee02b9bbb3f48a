// Package secret encrypts secrets that are stored in a database. Only our processes have the key.
// Each sealed text is bound to its context, so nobody with access to the database can read it,
// change it, or move it to another row.
//
// A key is derived from a text by HKDF with SHA-256 (RFC 5869, no salt). The derivation does not
// slow down guessing, so the text must be random, such as the output of `openssl rand -base64 32`,
// and not a password. The cipher is AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits,
// safe for 2^32 texts under one key.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Shortest is the least number of characters of a text from which a key is derived.
const Shortest = 32

var (
	// ErrNoKey is returned by Seal and Open if there are no keys.
	ErrNoKey = errors.New("there is no key to seal secrets with")
	// ErrBroken says that a sealed text was changed, belongs to another context, or was never
	// sealed.
	ErrBroken = errors.New("the sealed text was changed, or belongs elsewhere")
)

// UnknownKeyError says that a text was sealed with a key that is not among the given ones.
type UnknownKeyError struct {
	ID string // of the key
}

// Error returns the id of the key.
func (e *UnknownKeyError) Error() string {
	return "it is sealed under the key " + e.ID + ", which is not among those given"
}

// Keys seals with its first key and opens what any of its keys sealed. To rotate, put a new key
// first, and remove the old one once nothing is sealed with it. It is safe for concurrent use. A
// nil *Keys has no keys.
type Keys struct {
	keys []key
}

// key is one key and its id.
type key struct {
	id   string
	aead cipher.AEAD
}

// The purposes for HKDF. The id of a key reveals nothing about the key.
const (
	forSealing = "holdfast seal v1: key"
	forNaming  = "holdfast seal v1: key id"
)

// Parse makes keys of texts separated by commas; the first one seals. It ignores spaces around
// texts and empty texts. Without a text it returns nil. The error says which text is too short or
// repeated, without showing it.
func Parse(texts string) (*Keys, error) {
	var k Keys
	place := 0
	for text := range strings.SplitSeq(texts, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		place++
		if len(text) < Shortest {
			return nil, fmt.Errorf("key %d has %d characters; it needs %d at least, and they must be random (openssl rand -base64 32)",
				place, len(text), Shortest)
		}
		made, err := newKey(text)
		if err != nil {
			return nil, fmt.Errorf("make key %d: %w", place, err)
		}
		if _, twice := k.find(made.id); twice {
			return nil, fmt.Errorf("key %d is given twice", place)
		}
		k.keys = append(k.keys, made)
	}
	if len(k.keys) == 0 {
		return nil, nil //nolint:nilnil // nil is Keys without a key
	}
	return &k, nil
}

func newKey(text string) (key, error) {
	const keyLength, idLength = 32, 6
	secret, err := hkdf.Key(sha256.New, []byte(text), nil, forSealing, keyLength)
	if err != nil {
		return key{}, err
	}
	id, err := hkdf.Key(sha256.New, []byte(text), nil, forNaming, idLength)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return key{id: hex.EncodeToString(id), aead: aead}, err
}

func (k *Keys) find(id string) (key, bool) {
	if k == nil {
		return key{}, false
	}
	for _, have := range k.keys {
		if have.id == id {
			return have, true
		}
	}
	return key{}, false
}

// format begins sealed text: format.KEYID.BASE64URL.
const format = "hf1"

// Seal encrypts a secret and binds it to the words of about; Open needs the same words in the same
// order. Each call returns a different text of printable ASCII. The only error is ErrNoKey.
func (k *Keys) Seal(secret string, about ...string) (string, error) {
	if k == nil || len(k.keys) == 0 {
		return "", ErrNoKey
	}
	first := k.keys[0]
	sealed := first.aead.Seal(nil, nil, []byte(secret), bound(first.id, about))
	return format + "." + first.id + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the secret in a sealed text. It returns ErrNoKey if there are no keys,
// *UnknownKeyError if the needed key is missing, and ErrBroken if the text is invalid or not sealed
// about these words.
func (k *Keys) Open(sealed string, about ...string) (string, error) {
	if k == nil || len(k.keys) == 0 {
		return "", ErrNoKey
	}
	id, text, ok := parse(sealed)
	if !ok {
		return "", ErrBroken
	}
	with, ok := k.find(id)
	if !ok {
		return "", &UnknownKeyError{ID: id}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", ErrBroken
	}
	secret, err := with.aead.Open(nil, nil, raw, bound(id, about))
	if err != nil {
		return "", ErrBroken
	}
	return string(secret), nil
}

// KeyID returns the id of the key that a text was sealed with, or "" if it is not a sealed text. It
// needs no key and verifies nothing.
func KeyID(sealed string) string {
	id, _, _ := parse(sealed)
	return id
}

func parse(sealed string) (id, text string, ok bool) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != format || parts[1] == "" {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// bound returns the associated data: each word with its length, so that different lists give
// different bytes.
func bound(id string, about []string) []byte {
	var out []byte
	for _, word := range append([]string{format, id}, about...) {
		out = binary.AppendUvarint(out, uint64(len(word)))
		out = append(out, word...)
	}
	return out
}
