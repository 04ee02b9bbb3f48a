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

// receiptVerdict is what `check RECEIPT --json` prints.
type receiptVerdict struct {
	Path     string          `json:"path"`
	Type     string          `json:"type"` // receipt
	Valid    bool            `json:"valid"`
	Trusted  bool            `json:"trusted"` // signed by a key that was given
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Files    int64           `json:"files"`
	Bytes    int64           `json:"bytes"`
	Events   int64           `json:"events"`
	Key      string          `json:"key"`
	Against  string          `json:"against,omitempty"`
	Compared int64           `json:"compared,omitempty"` // files of the folder
	LeftOut  int64           `json:"left_out,omitempty"` // files of the receipt, Holdfast's own, that an export may be without
	Errors   int64           `json:"errors"`
	Faults   []receipt.Fault `json:"faults"`
	ExitCode int             `json:"exit_code"`
}

// receiptType is the --type of receipts. Only a receipt whose beginning is damaged needs it.
const receiptType registry.PayloadType = "receipt"

// isReceipt says whether a file begins as receipts do, of whatever format.
func isReceipt(path string) (_ bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	begin, err := io.ReadAll(io.LimitReader(file, int64(len(receipt.Magic))))
	return string(begin) == receipt.Magic, err
}

// trustedKeys reads the keys of a command line.
func trustedKeys(args []string) ([]receipt.PublicKey, error) {
	var keys []receipt.PublicKey
	for _, arg := range args {
		if key, err := receipt.ParsePublicKey(arg); err == nil {
			keys = append(keys, key)
			continue
		}
		text, err := os.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("--key %s: it is neither a public key in hex (64 digits) nor a file that can be read: %w", arg, exit.Cause(err))
		}
		more, err := receipt.ParsePublicKeys(text)
		if err != nil {
			return nil, exit.Fix(exit.Usagef("--key %s: %w", arg, err), "give what `holdfast receipt-keys --pem` prints")
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// checkReceipt verifies a receipt, against a folder unless that is "".
func checkReceipt(ctx context.Context, a *cli.App, path, against string, keys []receipt.PublicKey) (_ exit.Code, err error) {
	file, err := os.Open(path)
	if err != nil {
		return exit.Failed, exit.Cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	o := receipt.Options{Keys: keys}
	var c *comparison
	if against != "" {
		if c, err = compareWith(against); err != nil {
			return exit.Failed, err
		}
		defer func() { err = errors.Join(err, c.root.Close()) }()
		o.File = c.file
	}
	r, err := receipt.Verify(bufio.NewReader(file), o)
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
	v.Valid, v.Trusted, v.Errors = r.Valid(), r.Trusted, r.Total
	v.ObjectID, v.Version, v.Files, v.Bytes, v.Events, v.Key = h.Object, h.Version, h.Files, h.Bytes, h.Events.Count, h.Key
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
	lines := []string{fmt.Sprintf("%s: %s receipt", terminal.Clean(v.Path), words)}
	if h.Object != "" {
		lines[0] += fmt.Sprintf(" of %s, version %d, %s, %s, %s", terminal.Clean(h.Object), h.Version, terminal.Plural(h.Files, "file", "files"),
			terminal.ExactSize(h.Bytes), terminal.Plural(h.Events.Count, "event", "events"))
		lines = append(lines, "  recorded "+h.Recorded.UTC().Format("2006-01-02 15:04:05 UTC")+", signed by key "+terminal.Clean(h.Key))
	}
	if v.Compared > 0 {
		lines = append(lines, fmt.Sprintf("  %s in %s read and compared", terminal.Plural(v.Compared, "file", "files"), terminal.Clean(v.Against)))
	}
	if v.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("  %s not in it: an export may be without Holdfast's own (--system)", terminal.Plural(v.LeftOut, "file is", "files are")))
	}
	switch {
	case v.Trusted && v.Valid:
		lines = append(lines, "  the key is one of those given")
	case v.Valid:
		lines = append(lines, "  note: whose key that is was not verified: the receipt is whole and unchanged since somebody signed it; give the service's",
			"        public key by --key, from a source that you trust (holdfast receipt-keys --pem)")
	}
	for _, f := range v.Faults {
		lines = append(lines, "  error: "+terminal.Clean(f.Error()))
	}
	if more := v.Errors - int64(len(v.Faults)); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}
