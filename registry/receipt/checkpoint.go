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

// CheckpointMagic begins every checkpoint of every format.
const CheckpointMagic = `{"holdfast_checkpoint":`

// The first line of a checkpoint, by format. In the formats 1 and 2 chain ends do not say how far their
// evidence lies in the storage, and only one of format 2 has accepted gaps.
const (
	checkpointMagic1 = CheckpointMagic + "1}\n"
	checkpointMagic2 = CheckpointMagic + "2}\n"
	checkpointMagic3 = CheckpointMagic + "3}\n"
)

// ErrCheckpoint says that a text is not a checkpoint, was changed, or is not signed by a known key.
var ErrCheckpoint = errors.New("the checkpoint is not valid")

// ChainEnd is the end of an object's chain of events at some moment. Chains only grow, so the event
// with this number always has this hash.
type ChainEnd struct {
	Object string `json:"object"`
	Seq    int64  `json:"seq"`  // number of the last event
	Hash   string `json:"hash"` // of that event
	// Kept is the number of the last event that lay in the storage beside the object's bytes, in receipts
	// and segments; 0: none, as of a deleted object, or it is not known.
	Kept int64 `json:"kept"`
}

// Accepted records that people accepted a record that was older than a checkpoint, for instance
// after a restored backup. Its gaps follow it.
type Accepted struct {
	At         time.Time `json:"at"`
	Checkpoint string    `json:"checkpoint"` // name of the newer checkpoint
	Heads      string    `json:"heads"`      // of that checkpoint
	AskedBy    string    `json:"asked_by"`
	ApprovedBy string    `json:"approved_by"`
	Reason     string    `json:"reason"`
}

// Gap is a lost part of an object's chain that was accepted: the events from After+1 to To.
type Gap struct {
	Object string `json:"object"`
	After  int64  `json:"after"` // number of the last event that is left; 0: none
	To     int64  `json:"to"`
	Hash   string `json:"hash"` // signed hash of event To
}

// Checkpoint is the signed last part of a checkpoint file, which lists the chain ends of all
// objects.
type Checkpoint struct {
	At        time.Time `json:"at"`
	Storage   string    `json:"storage"` // the storage that it was made for
	Objects   int64     `json:"objects"`
	Heads     string    `json:"heads"` // sha256:HEX of all earlier lines
	Key       string    `json:"key"`
	PublicKey string    `json:"public_key"`
}

// SignCheckpoint fills in the key, signs, and returns the last two lines of the file: the signed
// line and the signature's line.
func (k *Key) SignCheckpoint(c Checkpoint) []byte {
	return Head(k.sign(&c.Key, &c.PublicKey, func(w *line) { w.b = c.line() }))
}

func (c Checkpoint) line() []byte {
	var w line
	w.text(`{"at":`)
	w.time(c.At)
	w.field("storage", c.Storage)
	w.numberField("objects", c.Objects)
	w.field("heads", c.Heads)
	w.field("key", c.Key)
	w.field("public_key", c.PublicKey)
	w.text("}\n")
	return w.b
}

// CheckpointWriter writes the lines of a checkpoint: first the acceptances with their gaps, then
// the chain ends. It is not safe for concurrent use.
type CheckpointWriter struct {
	out     io.Writer
	sum     hash.Hash
	begun   bool
	objects int64
}

// NewCheckpointWriter returns a writer that writes to out. It writes nothing before the first line.
func NewCheckpointWriter(out io.Writer) *CheckpointWriter {
	return &CheckpointWriter{out: out, sum: sha256.New()}
}

func (w *CheckpointWriter) write(text []byte) error {
	if !w.begun {
		text = append([]byte(checkpointMagic3), text...)
	}
	w.begun = true
	w.sum.Write(text)
	_, err := w.out.Write(text)
	return err
}

// Accept writes an acceptance. Its gaps come next.
func (w *CheckpointWriter) Accept(a Accepted) error { return w.write(a.line()) }

// Gap writes an accepted gap.
func (w *CheckpointWriter) Gap(g Gap) error { return w.write(g.line()) }

// Add writes the end of an object's chain.
func (w *CheckpointWriter) Add(e ChainEnd) error {
	w.objects++
	return w.write(e.line(true))
}

func (a Accepted) line() []byte {
	var w line
	w.text(`{"accepted":{"at":`)
	w.time(a.At)
	w.field("checkpoint", a.Checkpoint)
	w.field("heads", a.Heads)
	w.field("asked_by", a.AskedBy)
	w.field("approved_by", a.ApprovedBy)
	w.field("reason", a.Reason)
	w.text("}}\n")
	return w.b
}

func (g Gap) line() []byte {
	var w line
	w.text(`{"gap":{"object":`)
	w.string(g.Object)
	w.numberField("after", g.After)
	w.numberField("to", g.To)
	w.field("hash", g.Hash)
	w.text("}}\n")
	return w.b
}

// line returns the line of a chain's end, in the formats that say so with what is kept.
func (e ChainEnd) line(kept bool) []byte {
	var w line
	w.text(`{"object":`)
	w.string(e.Object)
	w.numberField("seq", e.Seq)
	w.field("hash", e.Hash)
	if kept {
		w.numberField("kept", e.Kept)
	}
	w.text("}\n")
	return w.b
}

// End returns the checkpoint to sign with [Key.SignCheckpoint]. The caller appends the signed lines
// to the same output.
func (w *CheckpointWriter) End(at time.Time, storage string) Checkpoint {
	return Checkpoint{At: at, Storage: storage, Objects: w.objects, Heads: "sha256:" + hex.EncodeToString(w.sum.Sum(nil))}
}

// CheckpointLines are functions that get the lines of a checkpoint as they are read: acceptances
// with their gaps, then chain ends. A nil function skips its lines. An error stops the reading.
type CheckpointLines struct {
	// Anyone may have signed it: it is only compared with itself.
	Anyone   bool
	Accepted func(Accepted) error
	Gap      func(Gap) error
	End      func(ChainEnd) error
}

// ReadCheckpoint reads a checkpoint line by line, passes each line on, and verifies the signature
// with the trusted keys. Callers must not rely on any line until it returns without an error. It
// returns ErrCheckpoint for an invalid checkpoint, and otherwise the error of the reader or of
// lines.
func ReadCheckpoint(r io.Reader, keys []PublicKey, lines CheckpointLines) (c Checkpoint, err error) {
	in, sum, objects := bufio.NewReaderSize(r, 64<<10), sha256.New(), int64(0)
	gaps, kept := false, false // whether acceptances and gaps may still come, and chain ends say what is kept
	for n := 1; ; n++ {
		text, err := readLine(in)
		if err != nil {
			return c, err
		}
		switch {
		case n == 1:
			switch string(text) {
			case checkpointMagic1:
			case checkpointMagic2:
				gaps = true
			case checkpointMagic3:
				gaps, kept = true, true
			default:
				return c, fmt.Errorf("%w: its first line is not that of a checkpoint that this program reads", ErrCheckpoint)
			}
		case bytes.HasPrefix(text, []byte(`{"at":`)):
			return readEnd(in, text, lines.trusts(keys), objects, "sha256:"+hex.EncodeToString(sum.Sum(nil)))
		case gaps && !bytes.HasPrefix(text, []byte(`{"object":`)):
			if err := lines.readAccepted(n, text); err != nil {
				return c, err
			}
		default:
			var end ChainEnd
			if decode(text, &end) != nil || !bytes.Equal(end.line(kept), text) || end.Seq < 1 || !isHash(end.Hash) || end.Kept < 0 {
				return c, errLine(n)
			}
			gaps = false
			objects++
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
	return fmt.Errorf("%w: line %d does not have the form of a checkpoint's line", ErrCheckpoint, n)
}

// readAccepted reads line n, an acceptance or a gap.
func (l CheckpointLines) readAccepted(n int, text []byte) error {
	var in struct {
		Accepted *Accepted `json:"accepted"`
		Gap      *Gap      `json:"gap"`
	}
	switch err := decode(text, &in); {
	case err != nil:
	case in.Accepted != nil && fourDigitYear(in.Accepted.At) && bytes.Equal(in.Accepted.line(), text):
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

// trusts returns whether a key, which says of itself which it is, is trusted.
func (l CheckpointLines) trusts(keys []PublicKey) func(c Checkpoint, text, signature []byte) bool {
	return func(c Checkpoint, text, signature []byte) bool {
		if l.Anyone {
			own, err := ParsePublicKey(c.PublicKey)
			return err == nil && signedBy([]PublicKey{own}, c.Key, text, signature)
		}
		return signedBy(keys, c.Key, text, signature)
	}
}

// readEnd verifies the signed line and its signature. Nothing may follow them.
func readEnd(in *bufio.Reader, text []byte, trusted func(c Checkpoint, text, signature []byte) bool, objects int64, heads string) (c Checkpoint, err error) {
	if err := json.Unmarshal(text, &c); err != nil || !fourDigitYear(c.At) || !bytes.Equal(c.line(), text) {
		return c, fmt.Errorf("%w: the signed line is malformed", ErrCheckpoint)
	}
	second, err := readLine(in)
	if err != nil {
		return c, err
	}
	signature, err := parseSignature(second)
	if err != nil {
		return c, fmt.Errorf("%w: its signature is malformed: %w", ErrCheckpoint, err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return c, errors.Join(fmt.Errorf("%w: there is text after its signature", ErrCheckpoint), err)
	}
	switch {
	case !trusted(c, text, signature):
		return c, fmt.Errorf("%w: it was changed after signing, or key %s is not a key of this service", ErrCheckpoint, c.Key)
	case c.Heads != heads || c.Objects != objects:
		return c, fmt.Errorf("%w: its lines were changed after signing", ErrCheckpoint)
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

// VerifyHead verifies the signature of a receipt's signed line with the trusted keys, and returns
// its header.
func VerifyHead(head string, signature []byte, keys []PublicKey) (Header, error) {
	h, err := ParseHeader(head)
	if err == nil && !signedBy(keys, h.Key, []byte(head), signature) {
		err = fmt.Errorf("it was changed after signing, or key %s is not a key of this service (signature %s)", h.Key, base64.StdEncoding.EncodeToString(signature))
	}
	return h, err
}

// readLine reads a line with its line feed. It returns ErrCheckpoint for a line that is cut off or
// too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it is cut off", ErrCheckpoint)
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line is too long", ErrCheckpoint)
	}
	return bytes.Clone(text), err
}
