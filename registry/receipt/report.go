package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ReportFormat is the version of the format of evidence reports.
const ReportFormat = 1

// ReportMagic begins every signature of an evidence report.
const ReportMagic = `{"holdfast_evidence_report":`

// Report is the signed line of an evidence report: what it covers, and its files by their manifest.
type Report struct {
	Registry   string    `json:"registry"`   // urn:uuid: of the Registry that made it
	From       time.Time `json:"from"`       // of the period
	To         time.Time `json:"to"`         // the first moment after it
	Collection string    `json:"collection"` // "": all
	Manifest   string    `json:"manifest"`   // SHA-256 of the manifest, in hex
	Key        string    `json:"key"`        // PublicKey.ID of the key that signed; "": nobody did
	PublicKey  string    `json:"public_key"`
}

func (w *line) report(r Report) {
	w.text(ReportMagic)
	w.number(ReportFormat)
	w.field("registry", r.Registry)
	w.timeField("from", r.From)
	w.timeField("to", r.To)
	w.field("collection", r.Collection)
	w.field("manifest", r.Manifest)
	w.field("key", r.Key)
	w.field("public_key", r.PublicKey)
	w.text("}\n")
}

// SignReport fills in the key, and returns the line and the signature's line. Without a key it returns
// the line alone.
func (k *Key) SignReport(r Report) []byte {
	return Head(k.sign(&r.Key, &r.PublicKey, func(w *line) { w.report(r) }))
}

// ErrReport says that a text is no signature of an evidence report, or was changed after signing.
var ErrReport = errors.New("the signature of the evidence report is not valid")

// ReadReport reads what SignReport wrote, and verifies the signature. trusted says whether one of the
// keys signed it; one that nobody signed has no Key. Its error is ErrReport.
func ReadReport(text []byte, keys []PublicKey) (r Report, trusted bool, err error) {
	end := bytes.IndexByte(text, '\n') + 1
	head, rest := text[:end], text[end:]
	var in struct {
		Format int `json:"holdfast_evidence_report"`
		Report
	}
	err = readHead(head, &in, &in.Format, ReportFormat, func(w *line) { w.report(in.Report) })
	if err == nil {
		trusted, err = verifyHead(in.Key, in.PublicKey, head, rest, keys)
	}
	if err != nil {
		return r, false, fmt.Errorf("%w: %w", ErrReport, err)
	}
	return in.Report, trusted, nil
}

// readHead decodes a line into in, of which format is a part, and compares it with how write writes that. A
// line of another format than newest is refused.
func readHead(head []byte, in any, format *int, newest int, write func(*line)) error {
	if err := json.Unmarshal(head, in); err == nil && *format > newest {
		return fmt.Errorf("its format is %d, but this program knows only format %d; use a newer holdfast", *format, newest)
	}
	if err := decode(head, in); err != nil {
		return err
	}
	var w line
	if write(&w); !bytes.Equal(w.b, head) || *format != newest {
		return errForm
	}
	return nil
}

// verifyHead verifies the signature of a line by the key that the line names. trusted says whether one
// of the keys signed it. A line that names no key has no signature.
func verifyHead(id, public string, head, rest []byte, keys []PublicKey) (trusted bool, err error) {
	if id == "" && public == "" && len(rest) == 0 {
		return false, nil
	}
	own, err := ParsePublicKey(public)
	if err != nil || own.ID() != id {
		return false, errors.New("it does not name its key")
	}
	signature, err := parseSignature(rest)
	if err != nil {
		return false, fmt.Errorf("its signature is malformed: %w", err)
	}
	if !signedBy([]PublicKey{own}, id, head, signature) {
		return false, errors.New("it was changed after signing")
	}
	return signedBy(keys, id, head, signature), nil
}
