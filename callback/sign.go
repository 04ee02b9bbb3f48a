package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed message, by Standard Webhooks 1.0 (standardwebhooks.com).
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Key signs messages.
type Key []byte

// secretPrefix is what a key's text begins with whose bytes are base64 (Standard Webhooks,
// "Signature scheme").
const secretPrefix = "whsec_"

// leastKey and mostKey are how long a key may be, in bytes.
const (
	leastKey = 24
	mostKey  = 64
)

// ErrKey says that a text is no key.
var ErrKey = fmt.Errorf("a signing key is %s and the base64 of %d to %d random bytes (openssl rand -base64 32)", secretPrefix, leastKey, mostKey)

// ParseKey reads a key as Standard Webhooks writes it: whsec_ and the base64 of 24 to 64 bytes.
func ParseKey(text string) (Key, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < leastKey || len(key) > mostKey {
		return nil, ErrKey // which does not repeat the text
	}
	return key, nil
}

// sign is the signature of a message by a key: v1, and the base64 of the HMAC-SHA256 of its id,
// time and body.
func (k Key) sign(m Message) string {
	h := hmac.New(sha256.New, k)
	h.Write(fmt.Appendf(nil, "%s.%d.", m.ID, m.At.Unix())) // no hash fails to write
	h.Write(m.Body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Errors of [Verify].
var (
	ErrSignature = errors.New("no signature of the message is by one of the keys")
	ErrTime      = errors.New("the message's time is too far off, so that it may have been recorded and sent again")
)

// Verify is what a receiver does with the headers and the body of a message: it compares the
// signatures with those by its keys, and its clock, at the moment now, with the message's time.
// ErrTime when they are further apart than tolerance, ErrSignature when none is right; both for
// headers that cannot be read.
func Verify(header func(string) string, body []byte, now time.Time, tolerance time.Duration, keys ...Key) (id string, err error) {
	seconds, err := strconv.ParseInt(header(headerTimestamp), 10, 64)
	at := time.Unix(seconds, 0)
	if err != nil || now.Sub(at).Abs() > tolerance {
		return "", ErrTime
	}
	m := Message{ID: header(headerID), At: at, Body: body}
	for have := range strings.FieldsSeq(header(headerSignature)) {
		for _, k := range keys {
			if hmac.Equal([]byte(have), []byte(k.sign(m))) {
				return m.ID, nil
			}
		}
	}
	return "", ErrSignature
}
