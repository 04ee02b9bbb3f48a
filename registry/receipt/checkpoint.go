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

// The first line of a checkpoint. One that tells of accepted gaps is of the second format, and
// every other one of the first.
const (
	CheckpointMagic = `{"holdfast_checkpoint":1}` + "\n"
	checkpointGaps  = `{"holdfast_checkpoint":2}` + "\n"
)

// ErrCheckpoint says that a text is no checkpoint, or was changed, or is not signed by a key that
// is known.
var ErrCheckpoint = errors.New("the checkpoint does not hold")

// ChainEnd is where the chain of an object's events ended when it was looked at. Chains only grow:
// the event of this number has this hash for ever.
type ChainEnd struct {
	Object string `json:"object"`
	Seq    int64  `json:"seq"`  // number of its last event
	Hash   string `json:"hash"` // of that event
}

// Accepted says that people took a record for right that was older than a checkpoint, as after a
// backup was restored. The gaps follow it.
type Accepted struct {
	At         time.Time `json:"at"`
	Checkpoint string    `json:"checkpoint"` // name of the one that the record was older than
	Heads      string    `json:"heads"`      // of that checkpoint
	AskedBy    string    `json:"asked_by"`
	ApprovedBy string    `json:"approved_by"`
	Reason     string    `json:"reason"`
}

// Gap is a part of an object's chain that is lost, as was accepted: the events after one, to the
// one that a checkpoint had signed.
type Gap struct {
	Object string `json:"object"`
	After  int64  `json:"after"` // number of the last event that was left; 0: none was
	To     int64  `json:"to"`
	Hash   string `json:"hash"` // that was signed, of event To
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

// CheckpointWriter writes the lines of a checkpoint, one at a time: first what was accepted, then
// the ends of the chains.
type CheckpointWriter struct {
	out     io.Writer
	sum     hash.Hash
	begun   bool
	objects int64
}

// NewCheckpointWriter begins a checkpoint. Nothing is written before the first line.
func NewCheckpointWriter(out io.Writer) *CheckpointWriter {
	return &CheckpointWriter{out: out, sum: sha256.New()}
}

func (w *CheckpointWriter) write(magic string, text []byte) error {
	if !w.begun {
		text = append([]byte(magic), text...)
	}
	w.begun = true
	w.sum.Write(text)
	_, err := w.out.Write(text)
	return err
}

// Accept writes who accepted that the record was older. Its gaps come next.
func (w *CheckpointWriter) Accept(a Accepted) error { return w.write(checkpointGaps, a.line()) }

// Gap writes a gap that was accepted.
func (w *CheckpointWriter) Gap(g Gap) error { return w.write(checkpointGaps, g.line()) }

// Add writes where an object's chain ends.
func (w *CheckpointWriter) Add(e ChainEnd) error {
	w.objects++
	return w.write(CheckpointMagic, e.line())
}

func (a Accepted) line() []byte {
	var w line
	w.text(`{"accepted":{"at":`)
	w.time(a.At)
	w.named("checkpoint", a.Checkpoint)
	w.named("heads", a.Heads)
	w.named("asked_by", a.AskedBy)
	w.named("approved_by", a.ApprovedBy)
	w.named("reason", a.Reason)
	w.text("}}\n")
	return w.b
}

func (g Gap) line() []byte {
	var w line
	w.text(`{"gap":{"object":`)
	w.string(g.Object)
	w.text(`,"after":`)
	w.number(g.After)
	w.text(`,"to":`)
	w.number(g.To)
	w.named("hash", g.Hash)
	w.text("}}\n")
	return w.b
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

// CheckpointLines is who is handed the lines of a checkpoint as they are read, in the order in
// which they stand there: acceptances with their gaps, then the ends of the chains. What is nil is
// passed over. An error ends the reading.
type CheckpointLines struct {
	Accepted func(Accepted) error
	Gap      func(Gap) error
	End      func(ChainEnd) error
}

// ReadCheckpoint reads a checkpoint, a line at a time, and hands them on: nothing of them holds
// before it has returned without an error. ErrCheckpoint says that it does not hold; another error
// is that of the reader or of lines. Keys are those that are trusted.
func ReadCheckpoint(r io.Reader, keys []PublicKey, lines CheckpointLines) (c Checkpoint, err error) {
	in, sum, before := bufio.NewReaderSize(r, 64<<10), sha256.New(), int64(0)
	gaps := false // may come yet
	for n := 1; ; n++ {
		text, err := boundedLine(in)
		if err != nil {
			return c, err
		}
		switch {
		case n == 1:
			if gaps = string(text) == checkpointGaps; !gaps && string(text) != CheckpointMagic {
				return c, fmt.Errorf("%w: it does not begin as one", ErrCheckpoint)
			}
		case bytes.HasPrefix(text, []byte(`{"at":`)):
			return readEnd(in, text, keys, before, "sha256:"+hex.EncodeToString(sum.Sum(nil)))
		case gaps && !bytes.HasPrefix(text, []byte(`{"object":`)):
			if err := lines.accepted(n, text); err != nil {
				return c, err
			}
		default:
			var end ChainEnd
			if decode(text, &end) != nil || !bytes.Equal(end.line(), text) || end.Seq < 1 || !isHash(end.Hash) {
				return c, errLine(n)
			}
			gaps = false
			before++
			if lines.End != nil {
				if err := lines.End(end); err != nil {
					return c, err
				}
			}
		}
		sum.Write(text)
	}
}

func errLine(n int) error {
	return fmt.Errorf("%w: line %d is not in the form of its lines", ErrCheckpoint, n)
}

// accepted reads line n, which tells of what was accepted.
func (l CheckpointLines) accepted(n int, text []byte) error {
	var in struct {
		Accepted *Accepted `json:"accepted"`
		Gap      *Gap      `json:"gap"`
	}
	switch err := decode(text, &in); {
	case err != nil:
	case in.Accepted != nil && oneYear(in.Accepted.At) && bytes.Equal(in.Accepted.line(), text):
		if l.Accepted == nil {
			return nil
		}
		return l.Accepted(*in.Accepted)
	case in.Gap != nil && bytes.Equal(in.Gap.line(), text) && in.Gap.After >= 0 && in.Gap.After < in.Gap.To && isHash(in.Gap.Hash):
		if l.Gap == nil {
			return nil
		}
		return l.Gap(*in.Gap)
	}
	return errLine(n)
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

// VerifyHead verifies the signature of a receipt's signed line by the keys that are trusted, and
// returns what it says.
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
