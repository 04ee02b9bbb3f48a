package receipt

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// CheckpointMagic is the first line of a checkpoint.
const CheckpointMagic = `{"holdfast_checkpoint":1}` + "\n"

// ErrCheckpoint says that a text is no checkpoint, or was changed, or is not signed by a key that is known.
var ErrCheckpoint = errors.New("the checkpoint does not hold")

// ChainEnd is where the chain of an object's events ended when it was looked at. Chains only grow: the event of this number has this
// hash for ever.
type ChainEnd struct {
	Object string `json:"object"`
	Seq    int64  `json:"seq"`  // number of its last event
	Hash   string `json:"hash"` // of that event
}

// Checkpoint is the signed end of a checkpoint: a text with the chain ends of all objects.
type Checkpoint struct {
	At        time.Time `json:"at"`
	Storage   string    `json:"storage"` // that it was made for
	Objects   int64     `json:"objects"`
	Heads     string    `json:"heads"` // sha256:HEX of all lines before
	Key       string    `json:"key"`
	PublicKey string    `json:"public_key"`
}

// SignCheckpoint completes a checkpoint with the key's names, and returns its last two lines.
func (k *Key) SignCheckpoint(c Checkpoint) []byte {
	public := k.Public()
	c.Key, c.PublicKey = public.ID(), public.String()
	text := c.line()
	return Head(string(text), ed25519.Sign(k.private, text))
}

func (c Checkpoint) line() []byte {
	var w line
	w.text(`{"at":`)
	w.time(c.At)
	w.named("storage", c.Storage)
	w.text(`,"objects":`)
	w.number(c.Objects)
	w.named("heads", c.Heads)
	w.named("key", c.Key)
	w.named("public_key", c.PublicKey)
	w.text("}\n")
	return w.b
}

// CheckpointWriter writes the lines of a checkpoint, one at a time.
type CheckpointWriter struct {
	out     io.Writer
	sum     hash.Hash
	objects int64
}

// NewCheckpointWriter begins a checkpoint.
func NewCheckpointWriter(out io.Writer) (*CheckpointWriter, error) {
	w := &CheckpointWriter{out: out, sum: sha256.New()}
	return w, w.write([]byte(CheckpointMagic))
}

func (w *CheckpointWriter) write(text []byte) error {
	w.sum.Write(text)
	_, err := w.out.Write(text)
	return err
}

// Add writes where an object's chain ends.
func (w *CheckpointWriter) Add(e ChainEnd) error {
	w.objects++
	return w.write(e.line())
}

func (e ChainEnd) line() []byte {
	var w line
	w.text(`{"object":`)
	w.string(e.Object)
	w.text(`,"seq":`)
	w.number(e.Seq)
	w.named("hash", e.Hash)
	w.text("}\n")
	return w.b
}

// End returns what is to be signed. The signed lines are written to where the others went.
func (w *CheckpointWriter) End(at time.Time, storage string) Checkpoint {
	return Checkpoint{At: at, Storage: storage, Objects: w.objects, Heads: "sha256:" + hex.EncodeToString(w.sum.Sum(nil))}
}

// ReadCheckpoint reads a checkpoint, a line at a time, and hands each chain end to each: nothing of them holds before it has returned
// without an error. ErrCheckpoint says that it does not hold; another error is that of the reader or of each. Keys are those
// that are trusted.
func ReadCheckpoint(r io.Reader, keys []PublicKey, each func(ChainEnd) error) (c Checkpoint, err error) {
	in, sum, before := bufio.NewReaderSize(r, 64<<10), sha256.New(), int64(0)
	for n := 1; ; n++ {
		text, err := boundedLine(in)
		if err != nil {
			return c, err
		}
		var end ChainEnd
		switch {
		case n == 1 && string(text) != CheckpointMagic:
			return c, fmt.Errorf("%w: it does not begin as one", ErrCheckpoint)
		case n == 1:
		case bytes.HasPrefix(text, []byte(`{"at":`)):
			return readEnd(in, text, keys, before, "sha256:"+hex.EncodeToString(sum.Sum(nil)))
		default:
			if decode(text, &end) != nil || !bytes.Equal(end.line(), text) || end.Seq < 1 || !isHash(end.Hash) {
				return c, fmt.Errorf("%w: line %d is not in the form of its lines", ErrCheckpoint, n)
			}
			before++
			if err := each(end); err != nil {
				return c, err
			}
		}
		sum.Write(text)
	}
}

// readEnd verifies the signed line and its signature, after which nothing may follow.
func readEnd(in *bufio.Reader, text []byte, keys []PublicKey, objects int64, heads string) (c Checkpoint, err error) {
	if err := json.Unmarshal(text, &c); err != nil || !oneYear(c.At) || !bytes.Equal(c.line(), text) {
		return c, fmt.Errorf("%w: the signed line is not in its form", ErrCheckpoint)
	}
	second, err := boundedLine(in)
	if err != nil {
		return c, err
	}
	signature, err := parseSignature(second)
	if err != nil {
		return c, fmt.Errorf("%w: its signature: %w", ErrCheckpoint, err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return c, errors.Join(fmt.Errorf("%w: something follows its signature", ErrCheckpoint), err)
	}
	switch {
	case !signedBy(keys, c.Key, text, signature):
		return c, fmt.Errorf("%w: it was changed after it was signed, or not signed by a key of this service (%s)", ErrCheckpoint, c.Key)
	case c.Heads != heads || c.Objects != objects:
		return c, fmt.Errorf("%w: its lines are not those that were signed", ErrCheckpoint)
	}
	return c, nil
}

func signedBy(keys []PublicKey, id string, text, signature []byte) bool {
	for _, k := range keys {
		if k.ID() == id && ed25519.Verify(ed25519.PublicKey(k), text, signature) {
			return true
		}
	}
	return false
}

// VerifyHead verifies the signature of a receipt's signed line by the keys that are trusted, and returns what it says.
func VerifyHead(head string, signature []byte, keys []PublicKey) (Header, error) {
	h, err := ParseHeader(head)
	if err == nil && !signedBy(keys, h.Key, []byte(head), signature) {
		err = fmt.Errorf("it was changed after it was signed, or not signed by a key of this service (%s, signature %s)", h.Key, base64.StdEncoding.EncodeToString(signature))
	}
	return h, err
}

// boundedLine reads a line with its end. One that is cut off or too long is no checkpoint's.
func boundedLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it is cut off", ErrCheckpoint)
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line is longer than any of a checkpoint", ErrCheckpoint)
	}
	return bytes.Clone(text), err
}
