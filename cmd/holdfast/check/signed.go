package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// The types of what a storage root holds of objects.
const (
	tombstoneType  registry.PayloadType = "tombstone"
	checkpointType registry.PayloadType = "checkpoint"
)

// signedVerdict is the output of `check TOMBSTONE --json` and `check CHECKPOINT --json`.
type signedVerdict struct {
	Path     string          `json:"path"`
	Type     string          `json:"type"` // tombstone or checkpoint
	Valid    bool            `json:"valid"`
	Signed   bool            `json:"signed"`
	Trusted  bool            `json:"trusted"` // signed by a key of --key
	ObjectID string          `json:"object_id,omitempty"`
	Version  int             `json:"version,omitempty"` // the last of a deleted object
	Storage  string          `json:"storage,omitempty"` // that a checkpoint was made for
	Objects  int64           `json:"objects,omitempty"` // in a checkpoint
	At       time.Time       `json:"at,omitzero"`       // when a checkpoint was made, and a deletion approved
	Key      string          `json:"key"`
	Faults   []receipt.Fault `json:"faults"`
	ExitCode int             `json:"exit_code"`
	about    string          // for people
}

func (v *signedVerdict) fault(where string, err error) {
	v.Faults = append(v.Faults, receipt.Fault{Where: where, Message: err.Error()})
}

// checkSigned verifies a tombstone or a checkpoint.
func checkSigned(a *cli.App, path string, t registry.PayloadType, keys []receipt.PublicKey) (_ exit.Code, err error) {
	file, err := os.Open(path)
	if err != nil {
		return exit.Failed, exit.Cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	v := signedVerdict{Path: path, Type: string(t), Faults: []receipt.Fault{}}
	if t == tombstoneType {
		err = v.tombstone(file, keys)
	} else {
		err = v.checkpoint(file, keys)
	}
	if err != nil {
		return exit.Failed, exit.Cause(err)
	}
	v.Signed = v.Key != ""
	switch {
	case len(v.Faults) > 0 || len(keys) == 0 || v.Trusted:
	case !v.Signed:
		v.fault("key", errors.New("it is not signed: nothing shows who made it"))
	default:
		v.fault("key", fmt.Errorf("it is signed by key %s, which is not among the keys given", v.Key))
	}
	code := exit.OK
	if v.Valid = len(v.Faults) == 0; !v.Valid {
		code = exit.Content
	}
	v.ExitCode = int(code)
	if a.JSON {
		return code, a.PrintJSON(v)
	}
	return code, v.print(a)
}

func (v *signedVerdict) tombstone(in io.Reader, keys []receipt.PublicKey) error {
	text, err := io.ReadAll(io.LimitReader(in, 2*receipt.MaxLine))
	if err != nil {
		return err
	}
	t, trusted, err := receipt.ReadTombstone(text, keys)
	if err != nil {
		v.fault("tombstone", err)
		return nil
	}
	v.Trusted, v.ObjectID, v.Version, v.At, v.Key = trusted, t.Object, t.Last.Version, t.ApprovedAt, t.Key
	v.about = fmt.Sprintf("of %s, which had %s: asked for by %s, approved by %s at %s: %s", t.Object, terminal.Plural(int64(t.Last.Version), "version", "versions"),
		t.AskedBy, t.ApprovedBy, t.ApprovedAt.UTC().Format(time.DateTime+" UTC"), t.Reason)
	return nil
}

func (v *signedVerdict) checkpoint(in io.Reader, keys []receipt.PublicKey) error {
	c, err := receipt.ReadCheckpoint(bufio.NewReader(in), nil, receipt.CheckpointLines{Anyone: true})
	if errors.Is(err, receipt.ErrCheckpoint) {
		v.fault("checkpoint", err)
		return nil
	} else if err != nil {
		return err
	}
	for _, k := range keys {
		v.Trusted = v.Trusted || k.ID() == c.Key
	}
	v.Storage, v.Objects, v.At, v.Key = c.Storage, c.Objects, c.At, c.Key
	v.about = fmt.Sprintf("of storage %s, made at %s, with the chains of %s", c.Storage, c.At.UTC().Format(time.DateTime+" UTC"), terminal.Plural(c.Objects, "object", "objects"))
	return nil
}

func (v *signedVerdict) print(a *cli.App) error {
	words := "valid"
	if !v.Valid {
		words = "INVALID"
	}
	lines := []string{strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", terminal.Clean(v.Path), words, v.Type, terminal.Clean(v.about)))}
	if v.Signed {
		lines = append(lines, "  signed by key "+terminal.Clean(v.Key))
	}
	lines = append(lines, signerNotes(v.Type, v.Valid, v.Signed, v.Trusted)...)
	for _, f := range v.Faults {
		lines = append(lines, "  error: "+terminal.Clean(f.Error()))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}

// signerNotes says what a signature proves.
func signerNotes(what string, valid, signed, trusted bool) []string {
	switch {
	case !valid:
		return nil
	case trusted:
		return []string{"  the key is one of --key"}
	case !signed:
		return []string{"  note: the " + what + " is complete, but not signed: nothing shows who made it, or whether it was changed"}
	}
	return []string{
		"  note: the " + what + " is complete and unchanged since it was signed, but its signer was not verified; add --key with the",
		"        service's public key, from a source that you trust (holdfast receipt-keys --pem)",
	}
}
