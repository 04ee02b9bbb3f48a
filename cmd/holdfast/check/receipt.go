package check

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// receiptVerdict is the output of `check RECEIPT --json`.
type receiptVerdict struct {
	Path     string          `json:"path"`
	Type     string          `json:"type"` // receipt, or events: those that lie beside an object's bytes
	Valid    bool            `json:"valid"`
	Signed   bool            `json:"signed"`
	Trusted  bool            `json:"trusted"` // signed by a key of --key
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Files    int64           `json:"files"`
	Bytes    int64           `json:"bytes"`
	Events   int64           `json:"events"`
	First    int64           `json:"first_event,omitempty"` // its number in the object's chain
	Key      string          `json:"key"`
	Against  string          `json:"against,omitempty"`
	Compared int64           `json:"compared,omitempty"` // files of the folder
	LeftOut  int64           `json:"left_out,omitempty"` // Holdfast's own files, which the export omits
	Errors   int64           `json:"errors"`
	Faults   []receipt.Fault `json:"faults"`
	ExitCode int             `json:"exit_code"`
}

// receiptType is the --type of receipts. Only a receipt with a damaged beginning needs it.
const receiptType registry.PayloadType = "receipt"

// eventsType is the type of a text of events outside receipts.
const eventsType registry.PayloadType = "events"

// magics are how the files begin that Holdfast has signed, of any format.
var magics = map[registry.PayloadType]string{
	receiptType: receipt.Magic, eventsType: receipt.EventsMagic, tombstoneType: receipt.TombstoneMagic, checkpointType: receipt.CheckpointMagic,
}

// typeOf returns what a file begins like: a type of magics, or "".
func typeOf(path string) (_ registry.PayloadType, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	begin, err := io.ReadAll(io.LimitReader(file, 64))
	for t, magic := range magics {
		if strings.HasPrefix(string(begin), magic) {
			return t, err
		}
	}
	return "", err
}

// trustedKeys reads the keys of --key: each is hex or a PEM file.
func trustedKeys(args []string) ([]receipt.PublicKey, error) {
	var keys []receipt.PublicKey
	for _, arg := range args {
		if key, err := receipt.ParsePublicKey(arg); err == nil {
			keys = append(keys, key)
			continue
		}
		text, err := os.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("--key %s: it is neither a public key in hex (64 digits) nor a readable file: %w", arg, exit.Cause(err))
		}
		more, err := receipt.ParsePublicKeys(text)
		if err != nil {
			return nil, exit.Fix(exit.Usagef("--key %s: %w", arg, err), "give the output of `holdfast receipt-keys --pem`")
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// checkReceipt verifies what Holdfast has signed: a receipt, which it compares with a folder unless against is
// "", events, a tombstone or a checkpoint.
func checkReceipt(ctx context.Context, a *cli.App, path, against string, keys []receipt.PublicKey) (_ exit.Code, err error) {
	found, err := typeOf(path)
	if err != nil {
		return exit.Failed, exit.Cause(err)
	}
	if against != "" && found != receiptType && found != "" {
		return exit.Usage, exit.Usagef("--against: %s has no files to compare, it is of type %s", path, found)
	}
	if found == tombstoneType || found == checkpointType {
		return checkSigned(a, path, found, keys)
	}
	file, err := os.Open(path)
	if err != nil {
		return exit.Failed, exit.Cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	o := receipt.Options{Keys: keys}
	verify := receipt.Verify
	if found == eventsType {
		verify = receipt.VerifyEvents
	}
	var c *comparison
	if against != "" {
		if c, err = compareWith(against); err != nil {
			return exit.Failed, err
		}
		defer func() { err = errors.Join(err, c.root.Close()) }()
		o.File = c.file
	}
	r, err := verify(bufio.NewReader(file), o)
	if err != nil {
		return exit.Failed, err
	}
	v := receiptVerdict{Path: path, Type: string(receiptType), Against: against, Faults: r.Faults}
	if c != nil {
		if err := c.finish(ctx, r); err != nil {
			return exit.Failed, err
		}
		v.Compared, v.LeftOut, v.Faults = c.compared, c.leftOut, r.Faults
	}
	h := r.Header
	v.Valid, v.Signed, v.Trusted, v.Errors = r.Valid(), r.Signed, r.Trusted, r.Total
	v.ObjectID, v.Version, v.Files, v.Bytes, v.Events, v.Key = h.Object, h.Version, h.Files, h.Bytes, h.Events.Count, h.Key
	if found == eventsType {
		v.Type, v.First = string(eventsType), h.Events.First
	}
	code := exit.OK
	if !v.Valid {
		code = exit.Content
	}
	v.ExitCode = int(code)
	if v.Faults == nil {
		v.Faults = []receipt.Fault{}
	}
	if a.JSON {
		return code, a.PrintJSON(v)
	}
	return code, printReceipt(a, v, h)
}

func printReceipt(a *cli.App, v receiptVerdict, h receipt.Header) error {
	words := "valid"
	if !v.Valid {
		words = "INVALID"
	}
	by := "not signed"
	if v.Signed {
		by = "signed by key " + terminal.Clean(h.Key)
	}
	what := v.Type
	if v.Type == string(eventsType) {
		what = "text"
	}
	lines := []string{fmt.Sprintf("%s: %s %s", terminal.Clean(v.Path), words, v.Type)}
	switch {
	case h.Object == "":
	case v.Type == string(eventsType):
		lines[0] += fmt.Sprintf(" %d to %d of %s", h.Events.First, h.Events.Last(), terminal.Clean(h.Object))
		lines = append(lines, "  "+by)
	default:
		lines[0] += fmt.Sprintf(" of %s, version %d, %s, %s, %s", terminal.Clean(h.Object), h.Version, terminal.Plural(h.Files, "file", "files"),
			terminal.ExactSize(h.Bytes), terminal.Plural(h.Events.Count, "event", "events"))
		lines = append(lines, "  recorded "+h.Recorded.UTC().Format("2006-01-02 15:04:05 UTC")+", "+by)
	}
	if v.Compared > 0 {
		lines = append(lines, fmt.Sprintf("  %s in %s read and compared", terminal.Plural(v.Compared, "file", "files"), terminal.Clean(v.Against)))
	}
	if v.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("  %s not in it: an export without --system omits Holdfast's own files", terminal.Plural(v.LeftOut, "file is", "files are")))
	}
	lines = append(lines, signerNotes(what, v.Valid, v.Signed, v.Trusted)...)
	for _, f := range v.Faults {
		lines = append(lines, "  error: "+terminal.Clean(f.Error()))
	}
	if more := v.Errors - int64(len(v.Faults)); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}
