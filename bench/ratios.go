package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// worse is the share of a recorded ratio by which a ratio may fall before -check warns.
const worse = 0.25

// recorded is the file of -record and -check: how a run was made, and its ratios.
type recorded struct {
	Date   string             `json:"date"`
	Cores  int                `json:"cores"`
	Load   string             `json:"load"`
	Only   string             `json:"only"`
	Scale  float64            `json:"scale"`
	Rounds int                `json:"rounds"`
	Ratios map[string]float64 `json:"ratios"`
}

// ratios returns the ratios of Holdfast's rows to the base lines of their parts.
func (t *table) ratios() map[string]float64 {
	out := map[string]float64{}
	for _, p := range t.parts {
		for _, r := range p.rows {
			ours := strings.HasPrefix(r.name, "holdfast") || strings.HasPrefix(r.name, "bagit.")
			for i, base := range p.base {
				if ours && r.ratio[i] > 0 {
					out[fmt.Sprintf("%s: %s, x %s", p.title, r.name, base)] = math.Round(r.ratio[i]*1e4) / 1e4
				}
			}
		}
	}
	return out
}

// readRatios reads the file of -check and takes its contests, scale and rounds.
func (o *options) readRatios() (r recorded, err error) {
	raw, err := os.ReadFile(o.check)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s: %w", o.check, err)
	}
	o.only, o.scale, o.rounds = r.Only, r.Scale, r.Rounds
	return r, nil
}

// writeRatios writes the file of -record.
func (b *bench) writeRatios() error {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetIndent("", "\t")
	to.SetEscapeHTML(false) // names of rows contain &&
	err := to.Encode(recorded{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Load: b.load,
		Only: b.only, Scale: b.scale, Rounds: b.rounds, Ratios: b.table.ratios(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(b.recordTo, text.Bytes(), 0o644)
}

// compare writes the present ratios beside the recorded ones, and a warning beside each that fell
// by a quarter.
func (r recorded) compare(to io.Writer, now map[string]float64) error {
	warnings := 0
	columns := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(columns, "\nRATIOS\trecorded %s, %d cores, load %s\tnow\tchange\t\n", r.Date, r.Cores, r.Load) // Flush returns errors
	for _, name := range slices.Sorted(maps.Keys(r.Ratios)) {
		was := r.Ratios[name]
		is, ok := now[name]
		if !ok {
			_, _ = fmt.Fprintf(columns, "  %s\t%.4f\t\t\tnot measured\n", name, was)
			continue
		}
		change, verdict := is/was-1, ""
		if change < -worse {
			verdict = "WARNING"
			warnings++
		}
		_, _ = fmt.Fprintf(columns, "  %s\t%.4f\t%.4f\t%+.0f %%\t%s\n", name, was, is, 100*change, verdict)
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "\n%d of %d ratios fell by more than %.0f %%. Before you look for a cause, repeat the run on an idle machine.\n",
		warnings, len(r.Ratios), 100*worse)
	return err
}
